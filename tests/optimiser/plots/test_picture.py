import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from amortes.errors import ConfigError
from amortes.optimiser.plots.picture import (
    STYLES,
    Picture,
    Style,
    dress,
    label,
    labels,
    style_of,
)


def test_notebooks_get_an_image() -> None:
    picture = Picture(2.0, 1.0, STYLES["dark"])
    picture.subplots().plot([0, 1], [0, 1])
    image = picture._repr_png_()
    assert image.startswith(b"\x89PNG")
    assert int.from_bytes(image[16:20]) == 220  # pixels across


@pytest.mark.parametrize("count", [1, 3, 7, 12])
def test_legends_are_inside_the_figure_and_cover_no_axes(count: int) -> None:
    picture = Picture(6.0, 4.0, STYLES["light"])
    ax = picture.subplots()
    handles = [Line2D([], [], label=f"{i}: " + "a long label" * (1 + i % 3)) for i in range(count)]
    picture.legend_above(*handles, *handles)
    picture.draw_without_rendering()
    (legend,) = picture.legends
    assert len(legend.get_texts()) == count
    box = legend.get_window_extent()
    assert box.y0 >= ax.get_window_extent().y1
    assert box.x1 <= picture.bbox.x1
    assert box.y1 <= picture.bbox.y1


def test_legends_are_read_line_by_line() -> None:
    picture = Picture(4.0, 3.0, STYLES["light"])
    picture.legend_above(*(Line2D([], [], label=f"the entry {i}") for i in range(7)))
    assert picture.get_figheight() > 3.0
    picture.draw_without_rendering()
    boxes = [(t.get_text(), t.get_window_extent()) for t in picture.legends[0].get_texts()]
    boxes.sort(key=lambda entry: (-round(entry[1].y0), entry[1].x0))
    assert [text for text, _ in boxes] == [f"the entry {i}" for i in range(7)]


def test_no_legend_of_nothing() -> None:
    picture = Picture(2.0, 1.0, STYLES["light"])
    picture.legend_above()
    assert picture.legends == []


def test_labels() -> None:
    assert label("lr") == "lr"
    assert label("$x$") == r"\$x\$"
    assert label("a\nb\ud800") == "a b?"
    long = label("one" + "x" * 100 + "two")
    assert len(long) == 30
    assert long.startswith("one")
    assert long.endswith("two")
    assert label("") == '""'


def test_labels_of_several_values_differ() -> None:
    assert labels(["relu", 3, "$x$"], 5) == ["relu", "3", r"\$x\$"]
    numbered = [f"option number {i} with a long label" for i in (1, 10, 11)]
    assert labels(numbered, 16) == ["…1…", "…10…", "…11…"]
    assert labels(["a_long_name_of_x_in_metres", "a_long_name_of_y_in_metres"], 12) == [
        "…x…",
        "…y…",
    ]
    assert labels(["a rate of 1 in all", "a rate of 12 in all"], 8) == ["…1…", "…12…"]


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
