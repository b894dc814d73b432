"""What a user gets for a mistake: always an AmortesError that names the item and what to do."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import AmortesError, ConfigError, DataError, FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import (
    Allowed,
    Categorical,
    Float,
    Int,
    Linear,
    Optimizer,
    Ordinal,
    Space,
    Trial,
    minimize,
)

LINE = {"x": Float(0, 1)}
MIXED = {"x": Float(0, 1), "n": Int(1, 3), "c": Categorical(["a", "b"]), "k": 5}
CONFIG = {"x": 0.5, "n": 2, "c": "a"}

Make = Callable[[], Any]

PARAMETERS: list[tuple[str, Make, str]] = [
    ("float-empty", lambda: Float(1, 1), "Float: low must be below high"),
    ("float-reversed", lambda: Float(2, 1), "Float: low must be below high"),
    ("float-nan", lambda: Float(math.nan, 1), "Float: low must be a finite number"),
    ("float-inf", lambda: Float(0, math.inf), "Float: high must be a finite number"),
    ("float-overflow", lambda: Float(-1e308, 1e308), "by a finite amount"),
    ("float-complex", lambda: Float(np.complex128(0), 1), "low must be a finite number"),  # type: ignore[arg-type]
    ("int-digits", lambda: Int(0, 10**5000), "that cannot be shown goes beyond"),
    ("float-text", lambda: Float("0", 1), "Float: low must be a finite number, not '0'"),  # type: ignore[arg-type]
    ("float-log-zero", lambda: Float(0, 1, log=True), "log=True needs low > 0"),
    ("float-log-narrow", lambda: Float(1e9, 1e9 + 2e-7, log=True), "leave out log=True"),
    ("float-log-text", lambda: Float(1, 2, log="no"), "Float: log must be True or False"),  # type: ignore[arg-type]
    ("int-fraction", lambda: Int(1, 2.5), "Int: high must be an int, not 2.5"),  # type: ignore[arg-type]
    ("int-bool", lambda: Int(False, 3), "Int: low must be an int, not False"),
    ("int-reversed", lambda: Int(3, 1), "Int: low must be below high"),
    ("int-log-zero", lambda: Int(0, 9, log=True), "log=True needs low >= 1"),
    ("int-huge", lambda: Int(0, 2**60), "Use a Float"),
    ("float-step-zero", lambda: Float(0, 1, step=0), "Float: step must be positive, not 0"),
    ("float-step-nan", lambda: Float(0, 1, step=math.nan), "step must be a finite number"),
    ("float-step-text", lambda: Float(0, 1, step="1"), "step must be a finite number"),  # type: ignore[arg-type]
    ("float-step-large", lambda: Float(0, 1, step=2), "the only value from 0.0 to 1.0 is 0.0"),
    ("float-step-tiny", lambda: Float(1e6, 1e6 + 1, step=1e-10), "is too small for values from"),
    ("float-step-log", lambda: Float(1, 2, log=True, step=0.1), "log=True or a step, not both"),
    ("int-step-negative", lambda: Int(0, 9, step=-1), "Int: step must be positive, not -1"),
    ("int-step-fraction", lambda: Int(0, 9, step=1.5), "Int: step must be an int, not 1.5"),  # type: ignore[arg-type]
    ("int-step-large", lambda: Int(0, 9, step=10), "the only value from 0 to 9 is 0"),
    ("int-step-log", lambda: Int(1, 9, log=True, step=2), "log=True or a step, not both"),
    ("choices-one", lambda: Categorical(["a"]), "Categorical: needs at least two"),
    ("choices-number", lambda: Categorical(3), "must be a list of values, not 3"),  # type: ignore[arg-type]
    ("choices-text", lambda: Categorical("abc"), "must be a list of values, not 'abc'"),
    ("choices-twice", lambda: Ordinal([1, 2, 1.0]), "Ordinal: choices must be distinct"),
    ("choices-none", lambda: Categorical([]), r"needs at least two choices, not \[\]"),
    ("choices-nan", lambda: Categorical([0.1, math.nan]), "choice nan is neither .* itself"),
    ("choices-array", lambda: Categorical([1, np.ones(2)]), "neither JSON .* nor hashable"),
    ("choices-set", lambda: Categorical([1, {2}]), "neither JSON .* nor hashable"),
    ("choices-equal", lambda: Categorical([(1, 2), (1.0, 2)]), "choices must be distinct"),
    ("choices-many", lambda: Categorical(range(10_001)), "more than the 10,000 supported"),
    ("space-list", lambda: Space([Float(0, 1)]), "expected a dict of parameters"),  # type: ignore[arg-type]
    ("space-empty", lambda: Space({}), "nothing varies"),
    ("space-constant", lambda: Space({"x": 1}), "nothing varies"),
    ("space-range", lambda: Space({"x": (0, 1)}), "x: expected Float, Int"),
    ("space-class", lambda: Space({"x": Float}), "x: expected Float, Int"),
    ("space-nan", lambda: Space({**LINE, "y": math.nan}), "y: constant nan"),
    ("space-name", lambda: Space({1: Float(0, 1)}), "name must be a non-empty string, not 1"),  # type: ignore[dict-item]
    ("linear-empty", lambda: Linear({}, upper=1), "coefficients must map"),
    ("linear-text", lambda: Linear({"x": "1"}, 1), "coefficient of x must be a finite number"),  # type: ignore[dict-item]
    ("linear-inf", lambda: Linear({"x": 1}, upper=math.inf), "upper must be a finite number"),
    ("linear-unknown", lambda: Space(LINE, [Linear({"z": 1}, 1)]), "no parameter 'z'"),
    ("linear-choice", lambda: Space(MIXED, [Linear({"c": 1}, 1)]), "c is categorical"),
    ("linear-large", lambda: Space(LINE, [Linear({"x": 1e200}, 1)]), r"reach 1e\+200, but at most"),
    ("linear-constant", lambda: Space(MIXED, [Linear({"k": 1}, 1)]), "k is constant in this"),
    ("linear-other", lambda: Space(LINE, [3]), "expected Linear"),  # type: ignore[list-item]
    ("constraints-text", lambda: Space(LINE, "x <= 1"), "expected a list of Linear"),
    (
        "expression-name",
        lambda: Space(LINE, ["z <= 1"]),
        "'z <= 1' uses z, which is not a parameter; choose from x",
    ),
    ("expression-none", lambda: Space(LINE, ["1 <= 2"]), "does not use any parameter"),
    ("expression-number", lambda: Space(LINE, ["x + 1"]), "must be a comparison"),
    ("expression-type", lambda: Space(MIXED, ["c + 1 < 2"]), "'c . 1 < 2' cannot be evaluated"),
    ("expression-code", lambda: Space(LINE, ["open('x')"]), "is not allowed in a constraint"),
    ("allowed-text", lambda: Allowed("x"), "Allowed: expected a function"),  # type: ignore[arg-type]
    ("allowed-flag", lambda: Allowed(bool, vectorized=1), "vectorized must be a bool"),  # type: ignore[arg-type]
    ("pool-empty", lambda: Space(LINE, pool=[]), "pool: none of its configs"),
    ("pool-dict", lambda: Space(LINE, pool={"x": 0.5}), "pool: expected a list"),  # type: ignore[arg-type]
    ("pool-outside", lambda: Space(LINE, pool=[{"x": 0}, {"x": 2}]), r"pool\[1\]: x: 2 is outside"),
    (
        "describe",
        lambda: Space.from_dict({"parameters": {"x": {"type": "real"}}}),
        "x: type must be",
    ),
]

CONFIGS: list[tuple[str, Any, str]] = [
    ("missing", {"x": 0.5, "n": 2}, "c: missing from the config"),
    ("unknown", CONFIG | {"lr": 1}, "no parameter lr; choose from x, n, c, k"),
    ("outside", CONFIG | {"x": 1.5}, r"x: 1.5 is outside \[0.0, 1.0\]"),
    ("nan", CONFIG | {"x": math.nan}, "x: nan is not a number"),
    ("digits", CONFIG | {"n": 10**5000}, r"n: .* is outside 1\.\.3"),
    ("complex", CONFIG | {"x": torch.tensor(0.5 + 1j)}, "x: .* is not a number"),
    ("meta", CONFIG | {"x": torch.tensor(0.5, device="meta")}, "x: .* is not a number"),
    ("choice-digits", CONFIG | {"c": 10**5000}, "c: .* is not one of"),
    ("text", CONFIG | {"x": "0.5"}, "x: '0.5' is not a number"),
    ("array", CONFIG | {"x": np.ones(2)}, "x: .* is not a number"),
    ("fraction", CONFIG | {"n": 1.5}, "n: 1.5 is not a whole number"),
    ("choice", CONFIG | {"c": "z"}, r"c: 'z' is not one of \['a', 'b'\]"),
    ("constant", CONFIG | {"k": 6}, "k: is fixed at 5, not 6"),
    ("constant-list", CONFIG | {"k": [5, set()]}, "k: is fixed at 5, not"),
    ("constant-tensor", CONFIG | {"k": torch.ones(2)}, "k: is fixed at 5, not tensor"),
    ("no dict", [0.5, 2, "a"], "expected a config"),
]

SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("goal", {"goal": "min"}, "goal: must be minimize or maximize, not 'min'"),
    ("acquisition", {"acquisition": "ucb"}, "acquisition: must be one of auto, pes"),
    ("seed", {"seed": -1}, "seed: must be an int of at least 0"),
    ("seed-none", {"seed": None}, "seed: must be an int"),
    ("initial", {"initial": 0}, "initial: must be an int of at least 1"),
    ("cost", {"cost": 3.0}, "cost: must be a function"),
    (
        "network",
        {"network": "best"},
        "'best' is neither a file nor the name of a network; choose from",
    ),
    ("network-pair", {"network": (1, 2)}, "must be an amortes Network, .* not a tuple"),
    ("start-number", {"start": 5}, "start: expected a list of .*, not 5"),
    ("start-scalar", {"start": np.array(5.0)}, "start: expected a list of .*, not array"),
    ("start", {"start": [3]}, r"start: expected a \(config, value\)"),
    ("start-config", {"start": [({"x": 7}, 1.0)]}, "x: 7 is outside"),
    ("start-value", {"start": [({"x": 0.1}, "low")]}, "a result must be a number, not 'low'"),
    ("start-pending", {"start": [Trial(4, {"x": 7})]}, "x: 7 is outside"),
]

RUNS: list[tuple[str, dict[str, Any], str]] = [
    ("fun", {"fun": 3}, "fun: must be a function"),
    ("n_trials", {"n_trials": 0}, "n_trials: must be an int of at least 1"),
    ("workers", {"workers": 1.5}, "workers: must be an int"),
    ("timeout", {"timeout": -1}, "timeout: must be a positive number"),
    ("early_stop", {"early_stop": 0}, "early_stop: must be a positive number"),
    ("callback", {"callback": 3}, "callback: must be a function of the optimiser and a trial"),
    ("errors", {"errors": "ignore"}, "errors: must be 'record' or 'raise'"),
]


@pytest.mark.parametrize(
    ("make", "says"), [row[1:] for row in PARAMETERS], ids=[r[0] for r in PARAMETERS]
)
def test_spaces(make: Make, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("config", "says"), [row[1:] for row in CONFIGS], ids=[r[0] for r in CONFIGS]
)
def test_configs(network: KernelNetwork, config: Any, says: str) -> None:
    opt = Optimizer(MIXED, network=network)
    with pytest.raises(DataError, match=says):
        opt.tell(config, 1.0)
    assert opt.trials == []


@pytest.mark.parametrize(
    ("changes", "says"), [row[1:] for row in SETTINGS], ids=[r[0] for r in SETTINGS]
)
def test_settings(network: KernelNetwork, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(AmortesError, match=says):
        Optimizer(LINE, **({"network": network} | changes))


@pytest.mark.parametrize(("changes", "says"), [row[1:] for row in RUNS], ids=[r[0] for r in RUNS])
def test_runs(network: KernelNetwork, changes: dict[str, Any], says: str) -> None:
    settings: dict[str, Any] = {"fun": lambda config: 0.0, "n_trials": 1, "network": network}
    with pytest.raises(ConfigError, match=says):
        minimize(space=LINE, **(settings | changes))


def told(value: Any, **rest: Any) -> Callable[[Optimizer], Any]:
    return lambda opt: opt.tell({"x": 0.5}, value, **rest)


CALLS: list[tuple[str, Callable[[Optimizer], Any], str]] = [
    ("value-none", told(None), r"a result must be a number, not None.*failed=True"),
    ("value-text", told("0.5"), "a result must be a number, not '0.5'"),
    ("value-list", told([1.0]), r"a result must be a number, not \[1.0\]"),
    ("value-complex", told(np.complex128(1 + 5j)), "a result must be a number"),
    ("value-bytes", told(bytearray(b"7")), r"a result must be a number, not bytearray\(b'7'\)"),
    ("value-meta", told(torch.tensor(1.0, device="meta")), "a result must be a number"),
    ("failed-array", told(None, failed=np.array([1, 2])), "failed: must be True or False"),
    ("reason", told(1.0, reason=3), "reason: must be a string or an exception, not 3"),
    ("value-vector", told(torch.ones(2)), "a result must be a number"),
    ("value-and-failed", told(1.0, failed=True), "pass only one of them"),
    ("cost-zero", told(1.0, cost=0), "a cost must be a positive, finite number, not 0"),
    (
        "cost-digits",
        told(1.0, cost=10**5000),
        "a cost must be .* not something of type int that cannot be shown",
    ),
    ("violation-nan", told(1.0, violation=math.nan), "a violation must be a finite number"),
    ("cost-nan", told(1.0, cost=math.nan), "a cost must be a positive, finite number"),
    ("trial-number", lambda opt: opt.tell(0, 1.0), "expected a config"),  # type: ignore[arg-type]
    (
        "trial-foreign",
        lambda opt: opt.tell(Trial(3, {"x": 0.5}), 1.0),
        "does not belong to this optimiser",
    ),
    (
        "trial-text",
        lambda opt: opt.tell(Trial("0", {}), 1.0),  # type: ignore[arg-type]
        "'0' with {} does not belong to this",
    ),
    ("withdraw-none", lambda opt: opt.withdraw({"x": 0.5}), "no trial has the config"),
    ("withdraw-number", lambda opt: opt.withdraw(0), "expected a config"),  # type: ignore[arg-type]
    (
        "ask-zero",
        lambda opt: opt.ask(0),
        "must be an int of at least 1 and",
    ),
    ("best-early", lambda opt: opt.best, "there is no result yet"),
    ("recommend-early", lambda opt: opt.recommend(), "no result to learn from yet"),
    ("recommend-level", lambda opt: opt.recommend(level=90), "level: must be between 0 and 1"),
    ("recommend-text", lambda opt: opt.recommend(level="0.9"), "level: must be between"),  # type: ignore[arg-type]
    ("importance-early", lambda opt: opt.importance(), "no result to learn from yet"),
]


@pytest.mark.parametrize(("call", "says"), [row[1:] for row in CALLS], ids=[r[0] for r in CALLS])
def test_calls(network: KernelNetwork, call: Callable[[Optimizer], Any], says: str) -> None:
    opt = Optimizer(LINE, network=network)
    with pytest.raises((DataError, ConfigError), match=says):
        call(opt)
    assert opt.trials == []


def test_a_trial_told_twice(network: KernelNetwork) -> None:
    opt = Optimizer(LINE, network=network)
    trial = opt.ask()
    opt.tell(trial, 1.0)
    with pytest.raises(DataError, match=r"already told 1.*tell\(trial.config, value\)"):
        opt.tell(trial, 2.0)


def test_constraints_nothing_satisfies(network: KernelNetwork) -> None:
    opt = Optimizer(Space(LINE, [Linear({"x": -1}, upper=-2)]), network=network)
    with pytest.raises(ConfigError, match="no config satisfies them"):
        opt.ask()


def test_a_first_config_that_violates_a_constraint(network: KernelNetwork) -> None:
    with pytest.raises(DataError, match="violates a constraint"):
        Optimizer(Space(LINE, [Linear({"x": 1}, 0.5)]), network=network, start=[{"x": 0.6}])


def test_a_cost_function_that_breaks_its_word(network: KernelNetwork) -> None:
    opt = Optimizer(LINE, acquisition="logei", network=network, cost=lambda config: 0.0, initial=1)
    opt.tell({"x": 0.5}, 1.0)
    with pytest.raises(DataError, match=r"the cost function at .*must be a positive"):
        opt.ask()


def test_a_network_in_training_mode(network: KernelNetwork) -> None:
    opt = Optimizer(LINE, network=network, initial=1)
    opt.tell({"x": 0.5}, 1.0)
    network.train()
    try:
        with pytest.raises(ConfigError, match=r"call `network.eval\(\)` first"):
            opt.ask()
    finally:
        network.eval()
    assert len(opt.trials) == 1


def test_a_saved_run_without_its_cost_function(network: KernelNetwork) -> None:
    state = Optimizer(LINE, network=network, cost=lambda config: 1.0).state
    with pytest.raises(ConfigError, match="the saved run had a cost function; pass the same"):
        Optimizer.from_state(state, network=network)


def test_a_file_that_is_not_there(network: KernelNetwork, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"absent\.json does not exist"):
        Optimizer.load(tmp_path / "absent.json", network=network)
