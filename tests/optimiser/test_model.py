from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from amortes.acquisition.policy import log_belief
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Int, Linear, Space
from amortes.optimiser.design import domain
from amortes.optimiser.model import Model
from amortes.optimiser.trials import Ledger, Outcome

LINE = Space({"x": Float(0, 1)})


def told(space: Space, results: Sequence[tuple[float, float | None]]) -> Ledger:
    ledger = Ledger(space)
    for x, value in results:
        outcome = Outcome.of(value, None, value is None, None)
        ledger.close(ledger.open({"x": x}).number, outcome)
    return ledger


def test_failures_are_no_data_but_weigh_the_gain(network: KernelNetwork) -> None:
    results = [(0.0, 0.0), (0.3, 1.0), (0.6, 0.5)]
    with_failure = Model(network, told(LINE, [*results, (0.9, None)]), maximise=True)
    without = Model(network, told(LINE, results), maximise=True)
    X = torch.tensor([[0.2], [0.9]], dtype=torch.float64)
    assert torch.equal(with_failure.fitted.predict(X).mean, without.fitted.predict(X).mean)
    ratio = with_failure.gain("ei")(X) / without.gain("ei")(X)
    assert float(ratio[0]) > 0.9
    assert float(ratio[1]) < 0.1
    difference = with_failure.gain("logei")(X) - without.gain("logei")(X)
    torch.testing.assert_close(difference, ratio.log())


@pytest.mark.parametrize("maximise", [True, False])
def test_a_failure_is_worth_the_worst_result(network: KernelNetwork, maximise: bool) -> None:
    failures = [(x, None) for x in (0.65, 0.7, 0.75)]
    model = Model(
        network, told(LINE, [(0.0, 0.0), (0.3, 1.0), (0.6, 0.5), *failures]), maximise=maximise
    )
    X = torch.tensor([[0.7], [0.2]], dtype=torch.float64)
    mean, worst = model.fitted.score("mean", X), -1.0  # standardised, results are -1, 0 and 1
    value = model.value(X)
    assert min(worst, float(mean[0])) < float(value[0]) < float(mean[0])
    assert value[1] == mean[1]  # where success is likely, its chance is of no account


@pytest.mark.parametrize("maximise", [True, False])
def test_penalties_are_drawn_in(network: KernelNetwork, maximise: bool) -> None:
    sign = 1.0 if maximise else -1.0
    results = [(i / 11, -1e6 if i in (0, 10, 11) else -abs(i / 11 - 0.4)) for i in range(12)]
    ledger = told(LINE, [(x, sign * value) for x, value in results])
    model = Model(network, ledger, maximise=maximise)
    drawn = model.fitted.units.to_network(model.fitted.y)
    good = drawn[1:10]
    values = torch.tensor([value for _, value in results[1:10]])
    assert torch.equal(good.argsort(stable=True), values.argsort(stable=True))
    assert (drawn[[0, 10, 11]] < good.min()).all()
    assert good.max() - good.min() > 0.1 * (good.min() - drawn.min())  # 5e-7 as they are
    found = model.search(model.value, seed=0)
    assert float(found.x) == pytest.approx(0.4, abs=0.1)


def test_the_search_respects_constraints(network: KernelNetwork) -> None:
    def score(X: Tensor) -> Tensor:
        return X.sum(1)

    for parameters in (
        {"x": Float(0, 1), "y": Float(0, 1)},
        {"x": Int(0, 50), "y": Int(0, 50)},
        {"x": Float(0.1, 1, log=True), "y": Float(0.1, 1, log=True)},
    ):
        scale = 50.0 if isinstance(parameters["x"], Int) else 1.0
        space = Space(parameters, [Linear({"x": 1.0, "y": 2.0}, upper=scale)])
        ledger = Ledger(space)
        for x in (0.1, 0.2):
            config = {"x": scale * x, "y": scale * x}
            ledger.close(ledger.open(config).number, Outcome.of(x, None, False, None))
        model = Model(network, ledger, maximise=True)
        config = space.decode(model.search(score, seed=0).x)
        assert config["x"] + 2 * config["y"] <= scale * (1 + 1e-6)
        # Brute force over a grid of the space.
        grid = torch.cartesian_prod(*torch.linspace(0, 1, 101, dtype=torch.float64).expand(2, -1))
        grid = space.project(grid)
        best = score(grid[space.feasible(grid)]).max()
        assert score(space.encode(config)[None]) >= best - 0.03


def test_only_plain_scores_are_spared(network: KernelNetwork) -> None:
    results = [(0.0, 0.0), (0.3, 1.0), (0.6, 0.5)]
    bounded = Space({"x": Float(0, 1)}, [Linear({"x": 1.0}, upper=0.9)])

    def first_scored(ledger: Ledger, plain: bool) -> int:
        scored = []

        def score(X: Tensor) -> Tensor:
            scored.append(len(X))
            return X[:, 0]

        Model(network, ledger, maximise=True).search(score, seed=0, plain=plain)
        return scored[0]

    everything = first_scored(told(LINE, results), plain=False)
    assert first_scored(told(LINE, results), plain=True) < 0.6 * everything
    assert first_scored(told(LINE, [*results, (0.9, None)]), plain=True) == everything
    assert first_scored(told(bounded, results), plain=True) > 0.6 * everything


def test_pending_points_lower_the_gain_there(network: KernelNetwork) -> None:
    ledger = told(LINE, [(0.0, 0.0), (0.3, 1.0)])
    X = torch.tensor([[0.8]], dtype=torch.float64)
    model = Model(network, ledger, maximise=True)
    for name in ("ei", "jes"):
        unseen, seen = (m.gain(name)(X) for m in (model, model.with_pending(X)))
        assert seen < 0.5 * unseen


def test_only_auto_believes_that_the_optimum_is_inside(network: KernelNetwork) -> None:
    results = [(0.1, 0.0), (0.4, 1.0), (0.8, 0.5)]
    model = Model(network, told(LINE, results), maximise=True)
    X = torch.tensor([[0.5], [0.0], [1.0]], dtype=torch.float64)
    assert torch.equal(model.worth("logei")(X), model.gain("logei")(X))
    difference = model.worth("auto")(X) - model.gain("auto")(X)
    torch.testing.assert_close(difference, log_belief(X, 3))
    # Gains that are not logarithms are multiplied.
    model.acquisition = lambda name: "jes"  # type: ignore[method-assign]
    torch.testing.assert_close(
        model.worth("auto")(X), model.gain("jes")(X) * log_belief(X, 3).exp()
    )
    few = Model(network, told(Space({"x": Int(0, 1)}), [(0, 0.0), (1, 1.0)]), maximise=True)
    assert torch.equal(few.worth("auto")(X[1:]), few.gain("auto")(X[1:]))


def test_only_discrete_spaces_are_projected() -> None:
    assert domain(LINE).project is None
    assert domain(Space({"x": Float(0, 1), "n": Int(1, 3)})).project is not None
