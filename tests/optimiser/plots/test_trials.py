import dataclasses

import numpy as np
import pytest

from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Optimizer, Space, Trial
from amortes.optimiser.plots.picture import STYLES
from amortes.optimiser.plots.trials import draw_convergence, draw_gain
from amortes.optimiser.plots.view import View

SPACE = Space({"x": Float(0, 1)})


def test_results_and_failures() -> None:
    trials = [
        Trial(0, {}, "done", 3.0),
        Trial(1, {}, "failed"),
        Trial(2, {}, "done", 1.0),
        Trial(3, {}, "pending"),
        Trial(4, {}, "done", 2.0),
        Trial(5, {}, "failed", violation=1.0),
    ]
    for maximise, best in ((False, [3.0, 1.0, 1.0, 1.0]), (True, [3.0] * 4)):
        figure = draw_convergence(View(trials, SPACE, maximise, STYLES["light"], past=1))
        (ax,) = figure.axes
        assert ax.lines[0].get_ydata() == pytest.approx(best)
        assert ax.get_title(loc="left") == "3 results, 1 failed, 1 infeasible"
        (legend,) = figure.legends
        assert {text.get_text() for text in legend.get_texts()} == {
            "past result",
            "result",
            "best so far",
            "failed",
            "infeasible",
            "pending",
        }
        figure.draw_without_rendering()
        ticks = np.array(ax.get_xticks())
        assert (ticks == ticks.round()).all()


def test_outliers_are_said() -> None:
    values = [3.0, 1e30, 1.0, 2.0, 2.5, 1.5]
    trials = [Trial(i, {}, "done", value) for i, value in enumerate(values)]
    figure = draw_convergence(View(trials, SPACE, False, STYLES["dark"]))
    (ax,) = figure.axes
    assert ax.get_ylim()[1] < 10
    assert "1 result above the axis, up to 1e+30" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_no_trials() -> None:
    figure = draw_convergence(View([], SPACE, True, STYLES["light"]))
    figure.draw_without_rendering()
    assert figure.axes[0].get_title(loc="left") == "0 results"
    one = draw_convergence(View([Trial(0, {}, "done", 1.0)], SPACE, True, STYLES["light"]))
    assert one.axes[0].get_title(loc="left") == "1 result"


def test_the_recommended_config(opt: Optimizer) -> None:
    figure = opt.plot.convergence()
    found = opt.recommend()
    (ax,) = figure.axes
    bar = ax.collections[-2].get_paths()[0].vertices
    assert np.asarray(bar)[:, 1] == pytest.approx([found.lower, found.upper])
    assert np.asarray(bar)[0, 0] == len(opt.trials)


def test_what_was_expected_of_each_trial(opt: Optimizer) -> None:
    figure = opt.plot.gain()
    above, below = figure.axes
    numbers = np.asarray(above.lines[0].get_xdata()).tolist()
    assert numbers == [trial.number for trial in opt.trials[1:]]  # nothing was known at the first
    explained = opt.explain(opt.trials[8])
    at = numbers.index(8)
    assert np.asarray(above.lines[0].get_ydata())[at] == pytest.approx(explained.information)
    assert np.asarray(below.lines[0].get_ydata())[at] == pytest.approx(explained.improvement)
    figure.draw_without_rendering()


def test_some_of_many_trials(opt: Optimizer) -> None:
    numbers = np.asarray(opt.plot.gain(most=3).axes[0].lines[0].get_xdata()).tolist()
    assert len(numbers) == 3
    assert numbers[-1] == opt.trials[-1].number
    with pytest.raises(ConfigError, match="most"):
        opt.plot.gain(most=0)


def test_information_is_on_a_linear_axis(opt: Optimizer) -> None:
    explained = [
        dataclasses.replace(opt.explain(opt.trials[8]), information=gain, improvement=gain)
        for gain in (1.0, 1e-2, 1e-4)
    ]
    above, below = draw_gain(explained, STYLES["light"]).axes
    assert (above.get_yscale(), below.get_yscale()) == ("linear", "log")


def test_nothing_was_expected(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    with pytest.raises(DataError, match="no result to learn from"):
        opt.plot.gain()
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(DataError, match="no gain to draw yet"):
        opt.plot.gain()
