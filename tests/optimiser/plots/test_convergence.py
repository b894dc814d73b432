import numpy as np
import pytest

from amortes.optimiser import Float, Optimizer, Space, Trial
from amortes.optimiser.plots.convergence import draw_convergence
from amortes.optimiser.plots.picture import STYLES
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
