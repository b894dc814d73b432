import io
from typing import Any

import numpy as np
import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Optimizer, Ordinal
from amortes.optimiser.plots.slices import shape


def test_the_line_is_what_the_model_expects(opt: Optimizer) -> None:
    figure = opt.plot.slices("lr")
    (ax,) = figure.axes
    x, median = (np.asarray(data)[30] for data in ax.lines[0].get_data())
    parameter = opt.space.free["lr"]
    config = {**opt.recommend().config, "lr": parameter.decode([float(x)])}
    assert median == pytest.approx(opt.predict(config).median)
    dashed = ax.lines[-1].get_xdata()
    assert np.asarray(dashed)[0] == pytest.approx(parameter.encode(opt.recommend().config["lr"])[0])


def test_the_line_goes_through_the_recommended_config(opt: Optimizer) -> None:
    (ax,) = opt.plot.slices("lr").axes
    x, median = ax.lines[0].get_data()
    found = opt.recommend()
    at = np.asarray(x) == opt.space.free["lr"].encode(found.config["lr"])[0]
    assert np.asarray(median)[at] == pytest.approx(opt.predict(found.config).median)
    assert (np.diff(np.asarray(x)) > 0).all()


def test_a_panel_for_each_parameter(opt: Optimizer) -> None:
    figure = opt.plot.slices(style="dark")
    assert [ax.get_xlabel() for ax in figure.axes] == ["lr", "layers", "width", "act"]
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"median", "90% interval", "failed", "infeasible", "recommended config"} < labels
    ticks = figure.axes[3].get_xticklabels()
    assert [text.get_text() for text in ticks] == ["relu", "gelu", "tanh"]


def test_stretches_that_are_not_allowed_are_hatched(opt: Optimizer) -> None:
    (ax,) = opt.plot.slices("width").axes
    layers = opt.recommend().config["layers"]
    (patch,) = ax.patches
    start = patch.get_window_extent().transformed(ax.transData.inverted()).x0
    width = opt.space.free["width"].decode([start])
    assert width == pytest.approx(1200 - 100 * layers, rel=0.08)
    assert patch.get_hatch() == "////"


def test_results_far_from_the_slice_are_faint(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, network=network)
    for x in (0.1, 0.5, 0.9):
        for y in (0.0, 0.5, 1.0):
            opt.tell({"x": x, "y": y}, (x - 0.5) ** 2 + 3 * (y - 0.5) ** 2)
    (ax,) = opt.plot.slices("x").axes
    dots = next(c for c in ax.collections if len(np.asarray(c.get_offsets())) == 9)
    opacity = np.asarray(dots.get_facecolor())[:, 3].reshape(3, 3)
    assert (opacity[:, 1] > 0.75).all()
    assert (opacity[:, [0, 2]] < 0.6).all()


def test_shape() -> None:
    assert [shape(n) for n in (1, 4, 5, 9, 14)] == [(1, 1), (4, 1), (3, 2), (3, 3), (4, 4)]


EXTREME = {
    "tiny": Float(0, 1e-300),
    "huge": Float(-1e307, 1e307),
    "log": Float(1e-300, 1e300, log=True),
    "narrow": Float(1e15, 1e15 + 2),
    "\ud800 $x_ \n": Int(-(2**47), 2**47),
}
MANY = {"$x_$": Categorical([rf"^\d+${i}$" for i in range(90)]), "o": Ordinal(range(200))}


def test_values_above_slices(opt: Optimizer) -> None:
    figure = opt.plot()
    assert [ax.get_xlabel() for ax in figure.axes] == ["trial", "lr", "layers", "width", "act"]
    figure.draw_without_rendering()
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len([text for text in texts if text.startswith("result")]) == 1
    lowest = legend.get_window_extent().y0
    boxes: list[Any] = [ax.get_tightbbox() for ax in figure.axes]
    assert all(box.y1 <= lowest for box in boxes)


def test_without_results_there_are_only_the_values(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    assert len(opt.plot().axes) == 1
    opt.tell(opt.ask(), failed=True)
    (ax,) = opt.plot().axes
    assert ax.get_title(loc="left") == "0 results, 1 failed"


@pytest.mark.parametrize("space", [EXTREME, MANY], ids=["extreme", "many"])
@pytest.mark.parametrize("size", [1.0, 1e99, 1e-99])
def test_extreme_ranges_names_and_values(
    network: KernelNetwork, space: dict[str, Float], size: float
) -> None:
    opt = Optimizer(space, network=network, acquisition="logei")
    for i in range(5):
        opt.tell(opt.ask(), size * (i % 3))
    figure = opt.plot()
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    first, *slices = figure.axes
    assert len(slices) == len(space)
    low, high = first.get_ylim()
    assert low < 0.0 < 2.0 * size < high  # every result is on the axis
    assert all(len({t.get_text() for t in ax.get_xticklabels()}) >= 2 for ax in slices)
