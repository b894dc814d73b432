import json
import math
import random

import pytest
import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Explanation, Float, Int, Optimizer, Space, Trial
from amortes.optimiser.explanation import CLOSE, importance
from amortes.random import generator

SPACE = {"x": Float(0, 1), "n": Int(1, 9), "c": Categorical(["a", "b"])}


def bowl(opt: Optimizer, noise: float, points: list[float]) -> None:
    rng = random.Random(0)
    for x in points:
        opt.tell({"x": x}, (x - 0.3) ** 2 + noise * rng.gauss(0, 1))


@pytest.fixture
def mixed(network: KernelNetwork) -> Optimizer:
    opt = Optimizer(SPACE, network=network, acquisition="logei", initial=3)
    for _ in range(9):
        trial = opt.ask()
        opt.tell(trial, (trial["x"] - 0.3) ** 2 + 0.1 * trial["n"] + (trial["c"] == "a"))
    return opt


def test_a_trial_is_explained_by_what_was_known_before_it(
    mixed: Optimizer, network: KernelNetwork
) -> None:
    late = mixed.explain(mixed.trials[6])
    early = Optimizer(SPACE, network=network, acquisition="logei", initial=3)
    for trial in mixed.trials[:6]:
        early.tell(trial.config, trial.value)
    then = early.explain(mixed.trials[6].config)
    assert late.trial == mixed.trials[6]
    assert (late.kind, late.prediction) == (then.kind, then.prediction)
    assert (late.information, late.improvement, late.best) == pytest.approx(
        (then.information, then.improvement, then.best)
    )
    # As soon as it is asked for, too.
    fresh = early.ask()
    asked = early.explain(fresh)
    early.tell(fresh, 5.0)
    told = early.explain(fresh)
    assert asked.prediction == told.prediction
    assert asked.information == pytest.approx(told.information)
    assert (asked.trial, told.trial) == (fresh, early.trials[6])


def test_the_closest_result(mixed: Optimizer) -> None:
    fitted = mixed._suggester.fitted()
    assert fitted.lengthscale is not None
    config = {"x": 0.31, "n": 2, "c": "a"}
    here = mixed.space.encode(config)
    distances = [
        math.dist(
            (here / fitted.lengthscale).tolist(),
            (mixed.space.encode(t.config) / fitted.lengthscale).tolist(),
        )
        for t in mixed.trials
    ]
    near = mixed.explain(config).nearest
    assert near is not None
    assert near.unit == "lengthscales"
    assert near.distance == pytest.approx(min(distances))
    there = mixed.trials[near.number]
    assert distances[near.number] == min(distances)
    assert near.value == there.value
    expected = {name: (there[name], v) for name, v in config.items() if there[name] != v}
    assert near.differs == expected


def test_exploring_is_far_away_and_exploiting_close_to_the_best(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    bowl(opt, 0.0, [0.0, 0.08, 0.16, 0.25, 0.38, 0.45])
    far, close = opt.explain({"x": 1.0}), opt.explain({"x": 0.32})
    assert (far.kind, close.kind) == ("explore", "exploit")
    assert far.exploration is not None
    assert close.exploration is not None
    assert close.exploration < 0.2 < 0.5 <= far.exploration <= 1.0
    # Uncertain, but not promising.
    assert far.prediction is not None
    assert far.prediction.upper - far.prediction.lower > 0.1
    assert close.best == pytest.approx((0.25 - 0.3) ** 2, abs=1e-3)
    assert close.improvement == pytest.approx((0.25 - 0.3) ** 2 - (0.32 - 0.3) ** 2, abs=1e-3)


def test_noise_is_a_reason_to_repeat(network: KernelNetwork) -> None:
    points = [i / 15 for i in range(16)]
    noisy, exact = (Optimizer({"x": Float(0, 1)}, network=network) for _ in range(2))
    bowl(noisy, 0.1, points)
    bowl(exact, 0.0, points)
    beside = {"x": points[5] + 0.01}
    found = noisy.explain(beside)
    assert found.kind == "repeat"
    assert found.nearest is not None
    assert found.nearest.number == 5
    assert found.nearest.distance <= CLOSE
    assert "repeats trial 5" in found.text
    assert exact.explain(beside).kind == "exploit"
    assert noisy.explain({"x": points[5]}).kind == "repeat"


def test_what_came_before_the_model(network: KernelNetwork) -> None:
    opt = Optimizer(SPACE, network=network, initial=4, start=[({"x": 0.1, "n": 1, "c": "a"}, 1.0)])
    first = opt.explain(opt.trials[0])
    assert first.kind == "given"
    assert first.prediction is None
    second = opt.explain(opt.ask())
    assert second.kind == "initial"
    assert second.prediction is not None
    fresh = Optimizer(SPACE, network=network)
    trial = fresh.ask()
    found = fresh.explain(trial)
    assert (found.kind, found.prediction, found.nearest) == ("initial", None, None)
    assert "spread over the space" in found.text
    with pytest.raises(DataError, match="no result"):
        fresh.explain({"x": 0.5, "n": 2, "c": "a"})


def test_gains_take_pending_trials_into_account(mixed: Optimizer) -> None:
    config = {"x": 0.9, "n": 8, "c": "b"}
    alone = mixed.explain(config)
    mixed.enqueue({**config, "x": 0.91})
    pending = mixed.ask()
    beside = mixed.explain(config)
    point = mixed.space.encode(config)[None]
    fitted = mixed._suggester.fitted(pending=True)
    assert fitted.X_pending is not None
    assert beside.information == pytest.approx(float(fitted.score("jes", point)))
    assert beside.information != alone.information
    assert beside.prediction == alone.prediction
    # The config of a pending trial is that trial.
    assert mixed.explain(pending.config).trial == pending


def test_the_direction(network: KernelNetwork) -> None:
    down, up = Optimizer(SPACE, network=network), Optimizer(SPACE, "maximize", network=network)
    for _ in range(7):
        trial = down.ask()
        value = (trial["x"] - 0.3) ** 2 + 0.1 * trial["n"]
        down.tell(trial, value)
        up.tell(trial.config, -value)
    a, b = (opt.explain({"x": 0.4, "n": 2, "c": "a"}) for opt in (down, up))
    assert a.kind == b.kind
    assert (a.exploration, a.information, a.improvement) == pytest.approx(
        (b.exploration, b.information, b.improvement)
    )


def test_it_is_readable(mixed: Optimizer) -> None:
    trial = mixed.ask()
    for explanation in (mixed.explain(trial), mixed.explain(mixed.trials[0])):
        assert f"Trial {explanation.trial.number}" in explanation.text  # type: ignore[union-attr]
        assert len(repr(explanation)) < 300
        assert "<table>" in explanation._repr_html_()
        json.dumps(explanation.to_dict())
    mixed.tell(trial, failed=True, reason="out of memory")
    assert mixed.explain(trial).text.endswith("It failed: out of memory.")
    assert mixed.explain(mixed.trials[4]).text.endswith(
        f"The result was {mixed.trials[4].value:.4g}."
    )


def test_shares_of_the_score_are_said() -> None:
    assert (
        "30% of its score comes from uncertainty, 70%" in Explanation({}, None, "exploit", 0.3).text
    )
    assert "its whole score is uncertainty" in Explanation({}, None, "explore", 1.0).text


def test_a_foreign_trial(mixed: Optimizer) -> None:
    with pytest.raises(DataError, match="does not belong to this optimiser"):
        mixed.explain(Trial(99, {"x": 0.1, "n": 1, "c": "a"}))


def test_shares_of_the_ishigami_function() -> None:
    # Total effects are known in closed form: Ishigami & Homma (1990).
    space = Space({"x1": Float(0, 1), "x2": Float(0, 1), "x3": Float(0, 1)})

    def ishigami(X: Tensor) -> Tensor:
        x1, x2, x3 = ((2 * X - 1) * math.pi).unbind(1)
        return x1.sin() + 7 * x2.sin() ** 2 + 0.1 * x3**4 * x1.sin()

    v1 = 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2
    v2 = 49 / 8
    v13 = 0.01 * math.pi**8 * (1 / 18 - 1 / 50)
    total = {"x1": v1 + v13, "x2": v2, "x3": v13}
    shares = importance(ishigami, space, generator(0))
    assert list(shares) == ["x1", "x2", "x3"]
    for name, value in total.items():
        assert shares[name] == pytest.approx(value / sum(total.values()), abs=0.04)


def test_a_parameter_has_all_its_coordinates() -> None:
    space = Space({"c": Categorical(["a", "b", "c", "d"]), "x": Float(0, 1), "unused": Float(0, 1)})
    shares = importance(lambda X: X[:, 1] * 2 + X[:, 4], space, generator(0))
    # Var(2 [c = b]) = 4 * 3/16, Var(x) = 1/12.
    assert shares["c"] == pytest.approx(0.75 / (0.75 + 1 / 12), abs=0.03)
    assert shares["unused"] == 0.0
    assert sum(shares.values()) == pytest.approx(1.0)


def test_nothing_matters_to_a_constant() -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    assert importance(lambda X: torch.ones(len(X)), space, generator(0)) == {"x": 0.0, "y": 0.0}
