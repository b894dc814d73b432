import pytest
from matplotlib.figure import Figure

from amortes.bench.methods.registry import METHODS
from amortes.bench.report.style import look, svg_text, tidy


def luminance(colour: str) -> float:
    """Relative luminance of a colour, as WCAG 2 has it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_lines_stand_out_on_white(name: str) -> None:
    assert 1.05 / (luminance(look(name)["color"]) + 0.05) >= 3.0


def test_methods_look_different_and_always_the_same() -> None:
    ours = [name for name in METHODS if not name.startswith(("fb", "map"))]
    assert len({str(look(name)) for name in ours}) == len(ours)
    assert look("jes")["color"] == look("paper:jes")["color"]
    assert look("jes")["ls"] != look("paper:jes")["ls"]
    assert look("nobody-knows")["color"] == look("random")["color"]


def test_acquisitions_on_gps_look_different_where_they_share_a_panel() -> None:
    names = [f"{model}{name}" for model in ("", "fb-") for name in ("jes", "mes")]
    assert len({str(look(name, apart=True)) for name in names}) == len(names)
    assert look("fb-jes", apart=True)["color"] == look("jes")["color"]
    assert look("map-jes", apart=True) == look("map-jes")


def drawn() -> Figure:
    figure = Figure(figsize=(3, 2), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], **look("jes"))
    tidy(ax)
    return figure


def test_the_same_figure_gives_the_same_file() -> None:
    assert svg_text(drawn()) == svg_text(drawn())
