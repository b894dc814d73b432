import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.acquisition import Fitted, differentiate
from amortes.acquisition.fitted import fit_warped
from amortes.acquisition.policy import LogBelief, worth_using
from amortes.acquisition.units import milestones
from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.optimiser import AmortesWarning, Categorical, Float, Int, Linear, Optimizer, Space
from amortes.optimiser.design import sobol_points
from amortes.optimiser.gain_weights import Weight, learned_cost_weight
from amortes.optimiser.space import Config
from amortes.optimiser.suggest import Suggester, Weighed
from amortes.optimiser.trials import Ledger, outcome
from amortes.prior.gp import PRIORS
from amortes.random import generator

LINE = Space({"x": Float(0, 1)})
X_AND_VALUES = [(0.0, 0.0), (0.3, 1.0), (0.6, 0.5)]


def suggester(network: Network[Any], space: Space, **changes: Any) -> Suggester:
    settings: dict[str, Any] = {
        "maximise": True,
        "acquisition": "logei",
        "seed": 0,
        "initial": 3,
        "cost": None,
    }
    return Suggester(network, Ledger(space), **(settings | changes))


def evaluate(chooser: Suggester, fun: Callable[[Config], float], n: int) -> list[Config]:
    """Ask and tell n times; the configs."""
    configs = []
    for _ in range(n):
        configs.append(chooser.next())
        trial = chooser.ledger.open(configs[-1])
        chooser.ledger.close(trial.number, outcome(fun(configs[-1])))
    return configs


def told(
    network: KernelNetwork,
    results: Sequence[tuple[float, float | None]],
    space: Space = LINE,
    **changes: Any,
) -> Suggester:
    """Knows values at some x; None is a failure."""
    chooser = suggester(network, space, **changes)
    for x, value in results:
        told = outcome(value, failed=value is None)
        chooser.ledger.close(chooser.ledger.open({"x": x}).number, told)
    return chooser


def test_it_begins_with_the_design(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "lr": Float(1e-3, 1, log=True)})
    configs = evaluate(suggester(network, space), lambda config: config["x"], 4)
    design = [space.decode(x) for x, _ in zip(sobol_points(space, 0), range(4), strict=False)]
    assert configs[:3] == design[:3]
    assert configs[3] != design[3]
    assert configs[3]["x"] > max(config["x"] for config in configs[:3])


def test_failures_and_pending_trials_do_not_end_the_design(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1)})
    chooser = suggester(network, space)
    assert len({config["x"] for config in evaluate(chooser, lambda _: math.nan, 6)}) == 6
    for _ in range(5):
        chooser.ledger.open(chooser.next())
    assert len({trial["x"] for trial in chooser.ledger.trials}) == 11


def test_where_evaluations_fail_is_avoided(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1)})
    configs = evaluate(
        suggester(network, space, initial=4),
        lambda config: config["x"] if config["x"] < 0.7 else math.nan,
        14,
    )
    x = sorted(config["x"] for config in configs)
    # The best of the rest, which is at the edge of the failures, is found.
    assert max(v for v in x if v < 0.7) > 0.67
    assert min(b - a for a, b in itertools.pairwise(x)) > 1e-4


def test_a_finite_space_is_exhausted_without_repeats_then_repeated(network: KernelNetwork) -> None:
    space = Space({"n": Int(1, 3), "c": Categorical(["a", "b", "c"])})
    chooser = suggester(network, space)
    configs = evaluate(chooser, lambda c: c["n"] if c["c"] == "b" else math.nan, 9)
    assert len({tuple(config.values()) for config in configs}) == 9
    with pytest.warns(AmortesWarning, match="every config of the space has been tried"):
        repeated = evaluate(chooser, lambda c: c["n"], 1)
    assert repeated[0]["c"] == "b"  # not one that failed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(chooser, lambda c: c["n"], 2)


def test_a_space_where_everything_failed_is_repeated(network: KernelNetwork) -> None:
    chooser = suggester(network, Space({"n": Int(1, 2)}))
    with pytest.warns(AmortesWarning, match="every config"):
        configs = evaluate(chooser, lambda _: math.nan, 4)
    assert {config["n"] for config in configs[:2]} == {1, 2}


@pytest.mark.parametrize("known", [True, False])
def test_costs_divide_the_gain(network: KernelNetwork, known: bool) -> None:
    space = Space({"x": Float(0, 1)})

    def price(config: Config) -> float:
        return 1.0 if config["x"] < 0.5 else 50.0

    chosen = {}
    for aware in (False, True):
        chooser = suggester(network, space, cost=price if known and aware else None)
        # As promising to the left of 0.5 as to the right, where evaluations are expensive.
        for x, y in [(0.0, 0.0), (0.5, 1.0), (1.0, 0.05)]:
            cost = price({"x": x}) if aware and not known else None
            trial = chooser.ledger.open({"x": x})
            chooser.ledger.close(trial.number, outcome(y, cost))
        chosen[aware] = chooser.next()["x"]
    assert chosen[False] > 0.5 > chosen[True]


def test_costs_are_learned_once_for_each_result(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = []

    def counted(network: Network[Any], X: Tensor, costs: Tensor) -> Weight:
        fits.append(len(costs))
        return learned_cost_weight(network, X, costs)

    monkeypatch.setattr("amortes.optimiser.suggest.learned_cost_weight", counted)
    chooser = suggester(network, Space({"x": Float(0, 1)}), initial=1)
    for told in (1, 2):
        trial = chooser.ledger.open({"x": 0.3 * told})
        chooser.ledger.close(trial.number, outcome(1.0, 2.0 * told))
        for _ in range(3):
            chooser.ledger.open(chooser.next())  # pending points are no reason to learn again
        assert len(fits) == told


def test_cheap_points_of_a_large_pool_are_found(network: KernelNetwork) -> None:
    rng = np.random.default_rng(0)
    pool = [{"x": x, "y": y} for x, y in rng.random((6000, 2)).tolist()]
    cheap = {id(config) for config in pool[::200]}
    space = Space({"x": Float(0, 1), "y": Float(0, 1)}, pool=pool)
    costs = {tuple(c.values()): 1.0 if id(c) in cheap else 1000.0 for c in pool}
    chooser = suggester(network, space, cost=lambda c: costs[c["x"], c["y"]])
    evaluate(chooser, lambda c: c["x"], 3)
    assert costs[tuple(chooser.next().values())] == 1.0


def test_cost_functions_see_allowed_configs_only(network: KernelNetwork) -> None:
    wide = Float(1, 60, log=True)
    space = Space({"a": wide, "b": wide}, [Linear({"a": 1, "b": 1}, 60)])
    seen: list[Config] = []

    def cost(config: Config) -> float:
        seen.append(config)
        return float(61.0 - config["a"] - config["b"])

    chooser = suggester(network, space, cost=cost)
    evaluate(chooser, lambda c: c["a"] * c["b"], 4)
    assert space.allows(chooser.next())
    assert seen
    assert all(config["a"] + config["b"] <= 60.0 + 1e-6 for config in seen)


def test_fits_are_made_again_only_after_news(network: KernelNetwork) -> None:
    chooser = suggester(network, LINE)
    evaluate(chooser, lambda c: c["x"], 3)
    fitted = chooser.fitted()
    assert chooser.fitted(pending=True) is fitted  # nothing is pending
    chooser.ledger.open({"x": 0.5})
    assert chooser.fitted() is fitted
    assert chooser.fitted(pending=True) is not fitted
    assert chooser.fitted(pending=True) is chooser.fitted(pending=True)
    chooser.ledger.close(3, outcome(None, failed=True))
    assert chooser.fitted() is fitted  # a failure is no result
    # Nor is one kept of a trial that was forgotten, for another of its number.
    chooser.ledger.open({"x": 0.5})
    waiting = chooser.fitted(pending=True)
    chooser.ledger.forget(4)
    chooser.ledger.open({"x": 0.7})
    assert chooser.fitted(pending=True) is not waiting


def test_departures_are_said_once(network: KernelNetwork) -> None:
    chooser = suggester(network, Space({f"x{i}": Float(0, 1) for i in range(17)}), initial=2)
    evaluate(chooser, lambda c: c["x0"], 2)
    with pytest.warns(AmortesWarning, match="17 coordinates"):
        evaluate(chooser, lambda c: c["x0"], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(chooser, lambda c: c["x0"], 1)


def test_given_values_are_kept_and_used(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1), "n": Int(1, 3)})
    chooser = suggester(network, space, initial=4)
    for _ in range(2):
        config = chooser.next({"x": 0.3, "n": 2})  # of the design
        assert (config["x"], config["n"]) == (0.3, 2)
        chooser.ledger.open(config)
    chooser = suggester(network, space, initial=20)
    evaluate(chooser, lambda c: -((c["x"] - c["y"]) ** 2), 20)
    for x in (0.1, 0.9):
        config = chooser.next({"x": x, "n": 2})
        assert (config["x"], config["n"]) == (pytest.approx(x), 2)
        assert config["y"] == pytest.approx(x, abs=0.15)


def test_given_values_in_a_finite_space(network: KernelNetwork) -> None:
    space = Space({"n": Int(1, 4), "c": Categorical(["a", "b"])})
    chooser = suggester(network, space, initial=1)
    for n in (1, 2, 3):
        trial = chooser.ledger.open({"n": n, "c": "a"})
        chooser.ledger.close(trial.number, outcome(n))
    assert chooser.next({"c": "a"}) == {"n": 4, "c": "a"}  # the only one left
    assert chooser.next({"n": 1}) == {"n": 1, "c": "b"}


def test_a_part_of_a_space_is_never_exhausted(network: KernelNetwork) -> None:
    space = Space({"c": Categorical(["a", "b", "c"])})
    worth = {"a": 0.0, "b": 1.0, "c": 0.2}
    configs = evaluate(suggester(network, space, partial=True), lambda c: worth[c["c"]], 10)
    assert {config["c"] for config in configs[:3]} == {"a", "b", "c"}
    assert [config["c"] for config in configs[3:]].count("b") >= 5


def test_suggesters_may_share_what_was_said(network: KernelNetwork) -> None:
    warned: set[str] = set()
    space = Space({"n": Int(1, 2)})
    with pytest.warns(AmortesWarning, match="every config"):
        evaluate(suggester(network, space, warned=warned), lambda c: c["n"], 3)
    evaluate(suggester(network, space, warned=warned), lambda c: c["n"], 3)


def test_suggestions_take_one_thread_and_leave_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, seen = torch.get_num_threads(), []
    fit = Suggester.fit

    def spied(self: Suggester, ledger: Ledger) -> Fitted:
        seen.append(torch.get_num_threads())
        return fit(self, ledger)

    monkeypatch.setattr(Suggester, "fit", spied)
    try:
        torch.set_num_threads(2)
        optimizer = Optimizer({"x": Float(0.0, 1.0)}, seed=0)
        for _ in range(3):
            trial = optimizer.ask()
            optimizer.tell(trial, trial.config["x"])
        optimizer.recommend()
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_failures_count_as_initial_trials(network: KernelNetwork) -> None:
    # Else a space most of which fails would be searched at random until there are enough results.
    space = Space({f"x{i}": Float(0, 1) for i in range(4)})

    def fun(config: Config) -> float:
        return math.nan if config["x0"] > 0.3 else -float(config["x1"])

    failed = 0
    for seed in range(4):
        configs = evaluate(suggester(network, space, initial=5, seed=seed), fun, 12)
        failed += sum(config["x0"] > 0.3 for config in configs[5:])
    assert failed <= 13  # at random it would be twenty


def test_failures_are_no_data_but_weigh_the_gain(network: KernelNetwork) -> None:
    X = torch.tensor([[0.2], [0.9]], dtype=torch.float64)
    gains = {}
    for name in ("ei", "logei"):
        with_failure = told(network, [*X_AND_VALUES, (0.9, None)], acquisition=name)
        without = told(network, X_AND_VALUES, acquisition=name)
        means = (chooser.fitted().predict(X).mean for chooser in (with_failure, without))
        assert torch.equal(*means)
        gains[name] = with_failure.gain()(X), without.gain()(X)
    ratio = gains["ei"][0] / gains["ei"][1]
    assert float(ratio[0]) > 0.9
    assert float(ratio[1]) < 0.1
    torch.testing.assert_close(gains["logei"][0] - gains["logei"][1], ratio.log())


@pytest.mark.parametrize("maximise", [True, False])
def test_a_failure_is_worth_the_worst_result(network: KernelNetwork, maximise: bool) -> None:
    failures = [(x, None) for x in (0.65, 0.7, 0.75)]
    chooser = told(network, [*X_AND_VALUES, *failures], maximise=maximise)
    X = torch.tensor([[0.7], [0.2]], dtype=torch.float64)
    worst = -1.0  # standardised, results are -1, 0 and 1
    mean = worth_using(chooser.fitted(), X, chooser.fitted().score("mean", X))
    value = chooser.value()(X)
    assert min(worst, float(mean[0])) < float(value[0]) < float(mean[0])
    assert value[1] == mean[1]  # where success is likely, its chance is of no account


@pytest.mark.parametrize("maximise", [True, False])
def test_penalties_are_drawn_in(network: KernelNetwork, maximise: bool) -> None:
    sign = 1.0 if maximise else -1.0
    results = [(i / 11, -1e6 if i in (0, 10, 11) else -abs(i / 11 - 0.4)) for i in range(12)]
    chooser = told(network, [(x, sign * value) for x, value in results], maximise=maximise)
    fitted = chooser.fitted()
    drawn = fitted.units.to_network(fitted.y)
    good = drawn[1:10]
    values = torch.tensor([value for _, value in results[1:10]])
    assert torch.equal(good.argsort(stable=True), values.argsort(stable=True))
    assert (drawn[[0, 10, 11]] < good.min()).all()
    assert good.max() - good.min() > 0.1 * (good.min() - drawn.min())  # 5e-7 as they are
    found = chooser.search(chooser.value(), seed=0)
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
        chooser = suggester(network, space)
        for x in (0.1, 0.2):
            trial = chooser.ledger.open({"x": scale * x, "y": scale * x})
            chooser.ledger.close(trial.number, outcome(x))
        config = space.decode(chooser.search(score, seed=0).x)
        assert config["x"] + 2 * config["y"] <= scale * (1 + 1e-6)
        # Brute force over a grid of the space.
        grid = torch.cartesian_prod(*torch.linspace(0, 1, 101, dtype=torch.float64).expand(2, -1))
        grid = space.project(grid)
        best = score(grid[space.feasible(grid)]).max()
        assert score(space.encode(config)[None]) >= best - 0.03


def test_points_are_spared_only_if_the_gain_is_not_weighed(network: KernelNetwork) -> None:
    bounded = Space({"x": Float(0, 1)}, [Linear({"x": 1.0}, upper=0.9)])

    def first_scored(chooser: Suggester, *, gain: bool) -> int:
        scored = []

        def score(X: Tensor) -> Tensor:
            scored.append(len(X))
            return X[:, 0]

        chooser.search(score, seed=0, gain=gain)
        return scored[0]

    everything = first_scored(told(network, X_AND_VALUES), gain=False)
    assert first_scored(told(network, X_AND_VALUES), gain=True) < 0.6 * everything
    failed = told(network, [*X_AND_VALUES, (0.9, None)])
    assert first_scored(failed, gain=True) == everything
    assert first_scored(told(network, X_AND_VALUES, bounded), gain=True) > 0.6 * everything


def test_pending_points_lower_the_gain_there(network: KernelNetwork) -> None:
    X = torch.tensor([[0.8]], dtype=torch.float64)
    for name in ("ei", "jes"):
        chooser = told(network, X_AND_VALUES[:2], acquisition=name)
        unseen = chooser.gains(X)
        chooser.ledger.open({"x": 0.8})
        assert chooser.gains(X) < 0.5 * unseen


def test_only_auto_believes_that_the_optimum_is_inside(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [(0.1, 0.0), (0.4, 1.0), (0.8, 0.5)]
    X = torch.tensor([[0.5], [0.0], [1.0]], dtype=torch.float64)
    sober = told(network, results)
    assert torch.equal(sober.worth()(X), sober.gain()(X))
    chooser = told(network, results, acquisition="auto")
    torch.testing.assert_close(chooser.worth()(X) - chooser.gain()(X), LogBelief(3)(X))
    few = told(network, [(0, 0.0), (1, 1.0)], Space({"x": Int(0, 1)}), acquisition="auto")
    assert torch.equal(few.worth()(X[1:]), few.gain()(X[1:]))
    # Gains that are not logarithms are multiplied.
    monkeypatch.setattr(chooser, "current", lambda: "jes")
    torch.testing.assert_close(chooser.worth()(X), chooser.gain()(X) * LogBelief(3)(X).exp())


def test_suggestions_do_not_depend_on_earlier_fits(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    chooser = suggester(network, space)
    evaluate(chooser, lambda c: math.sin(9 * c["x"]) - (c["y"] - 0.4) ** 2, 45)
    fitted = chooser.fitted()
    assert [40, 44, 45] == milestones(45) == [len(fit.y) for fit in chooser._fits]
    again = Suggester(
        network, chooser.ledger, maximise=True, acquisition="logei", seed=0, initial=3, cost=None
    )
    assert again.fitted().log_evidence == fitted.log_evidence
    assert again.next() == chooser.next()


def test_weighing() -> None:
    class Known:
        def score(self, name: str, X: Tensor) -> Tensor:
            return X[:, 0]

    X = torch.tensor([[2.0], [-2.0]], dtype=torch.float64)

    def half(X: Tensor) -> Tensor:
        return torch.full((2,), 0.5, dtype=torch.float64).log()

    fitted = cast(Fitted, Known())
    torch.testing.assert_close(Weighed(fitted, "jes", [half])(X).tolist(), [1.0, -4.0])
    torch.testing.assert_close(Weighed(fitted, "logei", [half])(X), X[:, 0] + half(X))
    assert torch.equal(Weighed(fitted, "jes", [])(X), X[:, 0])


@pytest.mark.parametrize("name", ["jes", "logei"])
def test_gradients_of_what_is_weighed(name: str) -> None:
    class Known:
        def score(self, name: str, X: Tensor) -> Tensor:
            return (9.0 * X).sin().sum(-1)  # of either sign

        def score_with_gradient(self, name: str, X: Tensor) -> tuple[Tensor, Tensor]:
            return differentiate(lambda X: self.score(name, X), X)

    weighed = Weighed(cast(Fitted, Known()), name, [LogBelief(3), lambda X: X.square().sum(-1)])
    X = torch.rand(20, 2, generator=generator(0), dtype=torch.float64)
    for ours, expected in zip(weighed.with_gradient(X), differentiate(weighed, X), strict=True):
        torch.testing.assert_close(ours, expected)


def test_networks_that_infer_nothing_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Transformer(TransformerConfig(width=8, layers=1, heads=1), PRIORS["robust"]).eval()
    chooser = suggester(network, LINE)
    evaluate(chooser, lambda c: c["x"], 3)
    fits: list[int] = []

    def fit(network: Network[Any], X: Tensor, y: Tensor, **rest: Any) -> Fitted:
        fits.append(len(y))
        return fit_warped(network, X, y, **rest)

    monkeypatch.setattr("amortes.optimiser.suggest.fit_warped", fit)
    for i in range(19):
        chooser.ledger.close(chooser.ledger.open({"x": i / 19}).number, outcome(float(i)))
    chooser.fitted()
    assert fits == [22]
