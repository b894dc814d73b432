import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from amortes.errors import ConfigError
from amortes.optimiser.plots.style import STYLES, Style, dress, hatched, style_of


def luminance(colour: str) -> float:
    """Relative luminance of the Web Content Accessibility Guidelines."""
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_everything_stands_out_from_the_background(style: Style) -> None:
    for name, colour in vars(style).items():
        if name not in ("background", "faint"):
            low, high = sorted([luminance(colour), luminance(style.background)])
            least = 7.0 if name == "text" else 3.0
            assert (high + 0.05) / (low + 0.05) >= least, name


def test_names() -> None:
    assert style_of("dark") is STYLES["dark"]
    for name in ("blue", None, ["light"]):
        with pytest.raises(ConfigError, match="style: must be one of light, dark"):
            style_of(name)


def test_ticks_that_are_made_later_have_the_colours() -> None:
    ax = Figure().subplots()
    dress(ax, STYLES["dark"])
    ax.plot([0, 100], [0, 1])
    ax.set_xticks(range(0, 100, 5))
    assert {text.get_color() for text in ax.get_xticklabels()} == {STYLES["dark"].text}
    assert ax.xaxis.label.get_color() == STYLES["dark"].text


def test_hatches() -> None:
    assert hatched("#ff0000", label="x").get_hatch() == "////"
