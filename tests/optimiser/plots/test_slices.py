import numpy as np
import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Optimizer
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
