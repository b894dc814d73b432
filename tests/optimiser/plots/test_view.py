import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Optimizer, Space, Trial
from amortes.optimiser.plots.axis import MOST_CHOICES
from amortes.optimiser.plots.picture import STYLES
from amortes.optimiser.plots.view import View, mark_failures


def view_of(opt: Optimizer) -> View:
    return opt.plot._view("light", model=True)


def test_kinds_of_trials(opt: Optimizer) -> None:
    view = view_of(opt)
    assert [trial.number for trial in view.without_value["failed"]] == [3]
    assert [trial.number for trial in view.without_value["infeasible"]] == [5]
    assert len(view.done) == len(view.values) == 9
    assert view.names == ["lr", "layers", "width", "act"]


def test_bands_are_predictions_of_the_function(opt: Optimizer) -> None:
    view = view_of(opt)
    configs = [view.varied({"layers": n}) for n in range(1, 9)]
    predicted = opt.predict(configs, level=0.9)
    for band, name in zip(view.band(configs), ("lower", "median", "upper"), strict=True):
        assert band == pytest.approx([getattr(p, name) for p in predicted])


def test_what_is_allowed(opt: Optimizer) -> None:
    view = view_of(opt)
    configs = [view.varied({"width": 1000, "layers": n}) for n in (1, 2, 3)]
    assert view.allowed(configs).tolist() == [True, True, False]


def test_nearness_does_not_count_the_parameter_itself(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, network=network)
    for x, y in ((0.1, 0.2), (0.3, 0.9), (0.8, 0.5)):
        opt.tell({"x": x, "y": y}, x)
    view = view_of(opt)
    assert view.fitted is not None
    assert view.fitted.lengthscale is not None
    away = [(y - view.centre["y"]) / float(view.fitted.lengthscale[1]) for y in (0.2, 0.9, 0.5)]
    assert view.nearness("x") == pytest.approx([math.exp(-0.5 * r * r) for r in away])


def test_of_many_choices_the_best_are_shown(network: KernelNetwork) -> None:
    choices = [f"c{i}" for i in range(40)]
    opt = Optimizer({"c": Categorical(choices), "x": Float(0, 1)}, network=network)
    for i in range(0, 40, 2):
        opt.tell({"c": f"c{i}", "x": 0.5}, abs(i - 20.0))
    axis = view_of(opt).axis("c")
    assert len(axis.shown) == MOST_CHOICES
    medians = {c: opt.predict({**opt.recommend().config, "c": c}).median for c in choices}
    assert set(axis.shown) == set(sorted(choices, key=medians.__getitem__)[:MOST_CHOICES])
    assert list(axis.shown) == [c for c in choices if c in axis.shown]
    assert np.isfinite(axis.place("c20"))


def test_at_the_good_edge() -> None:
    trials = [Trial(0, {}, "failed"), Trial(3, {}, "failed", violation=2.0), Trial(4, {})]
    for maximise in (True, False):
        view = View(trials, Space({"x": Float(0, 1)}), maximise, STYLES["light"])
        ax = Figure().subplots()
        mark_failures(ax, view, lambda trial: trial.number)
        marks = ax.collections
        assert [mark.get_label() for mark in marks] == ["failed", "infeasible"]
        places = [np.asarray(mark.get_offsets())[0] for mark in marks]
        assert [place[0] for place in places] == [0, 3]
        assert all((place[1] > 0.9) == maximise for place in places)
