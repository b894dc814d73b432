import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import AmortesWarning, Categorical, Float, Int, Linear, Optimizer, Space
from amortes.optimiser.design import spread
from amortes.optimiser.model import Model
from amortes.optimiser.space import Config
from amortes.optimiser.suggest import Suggester
from amortes.optimiser.trials import Ledger, Outcome
from amortes.optimiser.weights import Weight, learned_cost_weight


def suggester(network: KernelNetwork, space: Space, **changes: Any) -> Suggester:
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
        chooser.ledger.close(trial.number, Outcome.of(fun(configs[-1]), None, False, None))
    return configs


def test_it_begins_with_the_design(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "lr": Float(1e-3, 1, log=True)})
    configs = evaluate(suggester(network, space), lambda config: config["x"], 4)
    design = [space.decode(x) for x, _ in zip(spread(space, 0), range(4), strict=False)]
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
            chooser.ledger.close(trial.number, Outcome.of(y, cost, False, None))
        chosen[aware] = chooser.next()["x"]
    assert chosen[False] > 0.5 > chosen[True]


def test_costs_are_learned_once_for_each_result(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = []

    def counted(network: Network[Any], ledger: Ledger) -> Weight | None:
        fits.append(len(ledger.trials))
        return learned_cost_weight(network, ledger)

    monkeypatch.setattr("amortes.optimiser.suggest.learned_cost_weight", counted)
    chooser = suggester(network, Space({"x": Float(0, 1)}), initial=1)
    for told in (1, 2):
        trial = chooser.ledger.open({"x": 0.3 * told})
        chooser.ledger.close(trial.number, Outcome.of(1.0, 2.0 * told, False, None))
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


def test_models_are_fitted_again_only_after_news(network: KernelNetwork) -> None:
    chooser = suggester(network, Space({"x": Float(0, 1)}))
    evaluate(chooser, lambda c: c["x"], 3)
    model = chooser.model()
    assert chooser.model(pending=True) is model  # nothing is pending
    chooser.ledger.open({"x": 0.5})
    assert chooser.model() is model
    assert chooser.model(pending=True) is not model
    assert chooser.model(pending=True) is chooser.model(pending=True)
    chooser.ledger.close(3, Outcome.of(None, None, True, None))
    assert chooser.model() is not model
    # Nor is one kept of a trial that was forgotten, for another of its number.
    chooser.ledger.open({"x": 0.5})
    waiting = chooser.model(pending=True)
    chooser.ledger.forget(4)
    chooser.ledger.open({"x": 0.7})
    assert chooser.model(pending=True) is not waiting


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
        chooser.ledger.close(trial.number, Outcome.of(n, None, False, None))
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
    fit = Model.__init__

    def spied(*args: Any, **more: Any) -> None:
        seen.append(torch.get_num_threads())
        fit(*args, **more)

    monkeypatch.setattr(Model, "__init__", spied)
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
