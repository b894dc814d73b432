import dataclasses

import numpy as np
import pytest

from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Optimizer
from amortes.optimiser.plots.gain import draw_gain
from amortes.optimiser.plots.picture import STYLES


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
