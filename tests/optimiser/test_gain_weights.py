import math

import pytest
import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Int, Space
from amortes.optimiser.gain_weights import known_cost_weight, learned_cost_weight, success_weight
from amortes.optimiser.trials import Ledger, outcome

SPACE = Space({"x": Float(0, 1), "n": Int(1, 4)})


def tried(xs: list[tuple[float, bool]]) -> Ledger:
    ledger = Ledger(SPACE)
    for x, success in xs:
        told = outcome(0.0 if success else None, failed=not success)
        ledger.close(ledger.open({"x": x, "n": 1}).number, told)
    return ledger


def at(*xs: float) -> Tensor:
    return SPACE.encode_all([{"x": x, "n": 1} for x in xs])


def test_a_pattern_of_failures_rules_a_region_out(network: KernelNetwork) -> None:
    weight = success_weight(network, tried([(i / 10, i < 6) for i in range(11)]))
    chance = weight(at(0.2, 0.45, 0.65, 0.95)).exp()
    assert (chance > torch.tensor([0.99, 0.9, 0.0, 0.0])).all()
    assert (chance < torch.tensor([1.01, 1.01, 0.1, 0.01])).all()


def test_a_failure_among_successes_is_an_accident(network: KernelNetwork) -> None:
    repeats = [(0.1 * i, True) for i in range(11) for _ in range(3)]
    weight = success_weight(network, tried([*repeats, (0.5, False)]))
    assert bool((weight(at(0.45, 0.5, 0.9)).exp() > 0.9).all())


def test_the_chance_of_success_has_a_gradient(network: KernelNetwork) -> None:
    weight = success_weight(network, tried([(0.1, True), (0.5, True), (0.9, False)]))
    X = at(0.3, 0.7).requires_grad_()
    # The network's correction is in float32.
    assert torch.autograd.gradcheck(weight, (X,), atol=1e-3)


def test_known_costs_are_those_of_the_configs() -> None:
    weight = known_cost_weight(SPACE, lambda config: 10.0 ** config["n"])
    X = SPACE.encode_all([{"x": 0.1, "n": n} for n in (1, 3, 4)])
    torch.testing.assert_close(weight(X) / math.log(10), torch.tensor([-1.0, -3.0, -4.0]).double())


def test_a_cost_that_is_not_positive_is_named() -> None:
    with pytest.raises(DataError, match=r"cost function at .*'n': 2.*must be a positive.*not -1"):
        known_cost_weight(SPACE, lambda config: -1)(SPACE.encode_all([{"x": 0.1, "n": 2}]))


def test_costs_are_learned(network: KernelNetwork) -> None:
    ledger = Ledger(SPACE)
    for i in range(12):
        config = {"x": i / 11, "n": 1 + i % 4}
        cost = math.exp(3 * config["x"])
        ledger.close(ledger.open(config).number, outcome(0.0, cost))
    weight = learned_cost_weight(network, *ledger.numbers("cost"))
    X = SPACE.encode_all([{"x": x, "n": 2} for x in (0.2, 0.5, 0.8)])
    expected = torch.tensor([-0.6, -1.5, -2.4], dtype=torch.float64)
    torch.testing.assert_close(weight(X), expected, atol=0.1, rtol=0)


def test_a_violation_that_is_told_says_where_the_border_is(network: KernelNetwork) -> None:
    ledger = Ledger(SPACE)
    for x in (0.1, 0.3, 0.6, 0.9):  # allowed up to 0.42
        told = outcome(1.0, violation=x - 0.42)
        ledger.close(ledger.open({"x": x, "n": 1}).number, told)
    assert [trial.status for trial in ledger.trials] == ["done", "done", "failed", "failed"]
    weight = success_weight(network, ledger)
    chance = weight(at(0.2, 0.4, 0.44, 0.7)).exp()
    assert (chance > torch.tensor([0.95, 0.5, 0.0, 0.0])).all()
    assert (chance < torch.tensor([1.01, 1.01, 0.5, 0.05])).all()
