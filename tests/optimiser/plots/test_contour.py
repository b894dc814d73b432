import io

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Linear, Optimizer, Space
from amortes.optimiser.plots.contour import _bar_ticks
from amortes.optimiser.plots.picture import STYLES, Picture
from amortes.optimiser.plots.values import ValueScale


def test_cells_are_what_the_model_expects(opt: Optimizer) -> None:
    figure = opt.plot.contour("act", "layers")
    cells = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    Z = np.asarray(cells.get_array())
    assert Z.shape == (8, 3)
    config = {**opt.recommend().config, "act": "gelu", "layers": 3}
    assert Z[2, 1] == pytest.approx(opt.predict(config).median)
    widths = next(c for c in figure.axes[1].collections if isinstance(c, QuadMesh))
    found = opt.predict(config, level=0.9)
    assert np.asarray(widths.get_array())[2, 1] == pytest.approx(found.upper - found.lower)


def test_cells_in_which_a_parameter_is_not_used_are_empty(network: KernelNetwork) -> None:
    opt = Optimizer({"m": Categorical({"a": {"p": Float(0, 1)}, "b": {}})}, network=network)
    for p in (0.2, 0.4, 0.6):
        opt.tell({"m": "a", "p": p}, p)
    opt.tell({"m": "b"}, 1.0)
    figure = opt.plot.contour("m", "p")
    cells = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    hidden = np.ma.getmaskarray(np.ma.asarray(cells.get_array()))
    assert hidden[:, 1].all()
    assert not hidden[:, 0].any()
    assert "unused" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_what_is_marked(opt: Optimizer) -> None:
    figure = opt.plot.contour("width", "layers", style="dark")
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels == {"result", "failed", "infeasible", "recommended", "violates a constraint"}
    assert figure.axes[0].get_xlabel() == "width"
    assert figure.axes[0].get_ylabel() == "layers"
    figure.savefig(io.BytesIO(), format="png", dpi=40)


def test_surfaces_and_hatches_end_where_the_axes_do(network: KernelNetwork) -> None:
    space = {"n": Int(1, 10**5, log=True), "x": Float(0, 1), "c": Categorical(["a", "b"])}
    opt = Optimizer(Space(space, constraints=[Linear({"x": 1.0}, 0.5)]), network=network)
    for i in range(3):
        opt.tell(opt.ask(), float(i))
    for pair in (("n", "x"), ("c", "x")):
        surface, hatches = opt.plot.contour(*pair).axes[0].collections[:2]
        for drawn, bottom in ((surface, 0.0), (hatches, 0.5)):
            box = drawn.get_datalim(drawn.axes.transData)  # type: ignore[union-attr]
            assert box.extents == pytest.approx([0.0, bottom, 1.0, 1.0], abs=0.02)


def test_results_far_off_are_marked_and_cut_off(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, network=network)
    for i in range(8):
        trial = opt.ask()
        opt.tell(trial, 1e30 if i == 3 else trial["x"] + trial["y"])
    figure = opt.plot.contour("x", "y")
    assert "1 result above the axis, up to 1e+30" in {
        text.get_text() for text in figure.legends[0].get_texts()
    }
    for ax in figure.axes[2:]:  # of the colours
        assert ax.get_ylim()[1] < 10.0
    assert figure.axes[0].collections[0].extend in ("max", "both")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("high", "there"),
    [
        (8.0, ["0.2", "0.5", "1", "2", "5"]),
        (80.0, [r"$\mathdefault{10^{0}}$", r"$\mathdefault{10^{1}}$"]),
    ],
)
def test_colours_over_few_decades_have_several_labels(high: float, there: list[str]) -> None:
    scale = ValueScale(0.15, high, log=True, maximise=False)
    picture = Picture(4.0, 3.0, STYLES["light"])
    ax = picture.subplots()
    drawn = ax.pcolormesh([[0.15, high]], norm=scale.norm())
    bar = picture.colour_bar(drawn, ax, **_bar_ticks(scale))
    picture.draw_without_rendering()
    inside = [t for t in bar.ax.get_yticklabels() if 0.15 <= t.get_position()[1] <= high]
    assert [t.get_text() for t in inside][: len(there)] == there


@pytest.mark.parametrize("values", [[1.0] * 4, [1.0, 2.0, 1e30, 3.0], [1e-6, 1e-3, 1.0, 1e3]])
def test_any_values(network: KernelNetwork, values: list[float]) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, network=network)
    for value in values:
        opt.tell(opt.ask(), value)
    figure = opt.plot.contour("x", "y")
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    for bar in figure.axes[2:]:
        low, high = bar.get_ylim()
        ticks = [t for t in bar.get_yticklabels() if low <= t.get_position()[1] <= high]
        assert len({t.get_text() for t in ticks}) >= 2
