import numpy as np
import pytest

from amortes.errors import ConfigError
from amortes.optimiser import Optimizer


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
