import numpy as np
from matplotlib.figure import Figure

from amortes.optimiser import Float, Space, Trial
from amortes.optimiser.plots.marks import mark_failures
from amortes.optimiser.plots.style import STYLES
from amortes.optimiser.plots.view import View


def test_at_the_good_edge() -> None:
    trials = [Trial(0, {}, "failed"), Trial(3, {}, "failed", violation=2.0), Trial(4, {})]
    for maximise in (True, False):
        view = View(trials, Space({"x": Float(0, 1)}), maximise, STYLES["light"])
        marks = mark_failures(Figure().subplots(), view, lambda trial: trial.number)
        assert [mark.get_label() for mark in marks] == ["failed", "infeasible"]
        places = [np.asarray(mark.get_offsets())[0] for mark in marks]  # type: ignore[attr-defined]
        assert [place[0] for place in places] == [0, 3]
        assert all((place[1] > 0.9) == maximise for place in places)
