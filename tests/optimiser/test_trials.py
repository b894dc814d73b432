import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import DataError
from amortes.optimiser import Categorical, Float, Space, Trial
from amortes.optimiser.trials import ROUNDED, Ledger, copied, outcome, robust_sd

SPACE = Space({"x": Float(0, 1), "c": Categorical([[1], [2], [3]])})


def ledger() -> Ledger:
    made = Ledger(SPACE)
    for i in range(4):
        made.open({"x": 0.25 * i, "c": [1 + i % 3]})
    made.close(2, outcome(7.0, cost=2))
    made.close(0, outcome(None, failed=True))
    made.close(3, outcome(-1.0))
    return made


def test_numbers_of_any_library() -> None:
    told = outcome(np.float32(1.5), cost=torch.tensor([2.0]))
    assert (told["status"], told["value"], told["cost"]) == ("done", 1.5, 2.0)
    assert type(told["value"]) is float


UNUSABLE = [float("nan"), float("inf"), -np.inf, 1e101, torch.tensor(1e400), 10**5000]


@pytest.mark.parametrize("value", UNUSABLE, ids=range(len(UNUSABLE)))
def test_numbers_that_are_no_use_are_failures(value: Any) -> None:
    told = outcome(value)
    assert (told["status"], told["value"]) == ("failed", None)
    assert told["reason"].startswith("the value was")


def test_points_and_values_go_together_by_number() -> None:
    made = ledger()
    assert [trial.number for trial in made.having("done")] == [2, 3]
    assert made.values().tolist() == [7.0, -1.0]
    assert made.points("done")[:, 0].tolist() == [0.5, 0.75]
    assert made.points("failed")[:, 0].tolist() == [0.0]
    assert made.points("pending")[:, 0].tolist() == [0.25]
    assert made.points("failed", "done").shape == (3, 4)
    X, costs = made.numbers("cost")
    assert X[:, 0].tolist() == [0.5]
    assert costs.tolist() == [2.0]


def test_nothing_has_shape_zero_by_d() -> None:
    assert Ledger(SPACE).points("done").shape == (0, 4)
    assert Ledger(SPACE).numbers("cost")[0].shape == (0, 4)


def test_a_trial_is_told_once() -> None:
    made = ledger()
    with pytest.raises(DataError, match="trial 2 was already told 7"):
        made.close(2, outcome(1.0))
    with pytest.raises(DataError, match="trial 0 was already told as failed"):
        made.close(0, outcome(1.0))
    assert made.values().tolist() == [7.0, -1.0]


def test_a_withdrawn_trial_leaves_nothing_but_its_number() -> None:
    made = ledger()
    before = made.changes
    made.withdraw(2)
    assert made.changes > before
    assert made.values().tolist() == [-1.0]
    assert len(made.numbers("cost")[1]) == 0
    assert made.trials[2] == Trial(2, {"x": 0.5, "c": [3]}, "withdrawn")
    with pytest.raises(DataError, match=r"trial 2 was withdrawn; tell its config"):
        made.close(2, outcome(1.0))
    again = Ledger(SPACE)
    again.restore(json.loads(json.dumps(made.to_list())))
    assert again.trials == made.trials


def test_the_newest_trials_can_be_forgotten() -> None:
    made = ledger()
    made.forget(3)
    assert len(made.trials) == 3
    assert made.points("done")[:, 0].tolist() == [0.5]


def test_configs_that_were_rounded_are_noticed() -> None:
    made = ledger()
    (near,) = made.find({"x": 0.2501, "c": [2]}, "pending", within=ROUNDED)
    assert near.number == 1
    assert not made.find({"x": 0.2501, "c": [1]}, "pending", within=ROUNDED)
    assert not made.find({"x": 0.26, "c": [2]}, "pending", within=ROUNDED)


def test_trials_are_found_by_config() -> None:
    made = ledger()
    again = made.close(made.open({"x": 0.5, "c": [3]}).number, outcome(8.0))
    made.open({"x": 0.5, "c": [3]})
    assert made.find({"x": 0.5, "c": [3]}, "done", "failed") == [made.trials[2], again]
    assert made.find({"x": 0.25, "c": [2]}, "done", "failed") == []


def test_pending_trials_are_found_by_config() -> None:
    made = ledger()
    found = made.pending({"x": 0.25, "c": [2]})
    assert found is not None
    assert found.number == 1
    assert made.pending({"x": 0.5, "c": [3]}) is None


def test_a_ledger_survives_json() -> None:
    made, again = ledger(), Ledger(SPACE)
    again.restore(json.loads(json.dumps(made.to_list())))
    assert again.trials == made.trials
    assert torch.equal(again.points("done", "pending"), made.points("done", "pending"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"number": 3}, "number"),
        ({"number": 2.0}, "number"),
        ({"number": True}, "number"),
        ({"status": "lost"}, "status"),
        ({"status": ["done"]}, "status"),
        ({"status": "pending"}, "value"),
        ({"status": "withdrawn"}, "value"),
        ({"status": "failed"}, "value"),
        ({"value": None}, "value: must be a number"),
        ({"value": "7"}, "value: must be a number"),
        ({"value": True}, "value: must be a number, not True"),
        ({"cost": True}, "cost: must be a number, not True"),
        ({"violation": False}, "violation: must be a number, not False"),
        ({"value": math.inf}, "value"),
        ({"value": math.nan}, "value"),
        ({"value": 1e308}, "value"),
        ({"cost": -2.0}, "cost"),
        ({"cost": 0}, "cost"),
        ({"cost": math.inf}, "cost"),
        ({"cost": math.nan}, "cost"),
        ({"violation": "a"}, "violation"),
        ({"violation": math.nan}, "violation"),
        ({"violation": 1e308}, "violation"),
        ({"violation": 5}, "violation"),  # but it is done
        ({"reason": 7}, "reason"),
        ({"config": {"x": 2, "c": [1]}}, "x: 2 is outside"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_damaged_ledger_is_refused(change: dict[str, Any], field: str) -> None:
    rows = ledger().to_list()
    rows[2] |= change
    with pytest.raises(DataError, match=rf"trials\[2\]: .*{field}"):
        Ledger(SPACE).restore(rows)


def test_whole_numbers_in_a_ledger_are_numbers() -> None:
    rows = ledger().to_list()
    rows[2] |= {"value": 7, "cost": 2, "violation": -1}
    again = Ledger(SPACE)
    again.restore(rows)
    told = again.trials[2]
    assert (told.value, told.cost, told.violation) == (7.0, 2.0, -1.0)
    assert {type(number) for number in (told.value, told.cost, told.violation)} == {float}


def test_reasons_are_text() -> None:
    told = outcome(None, failed=True, reason=ZeroDivisionError("by zero"))
    assert told["reason"] == "ZeroDivisionError: by zero"
    assert outcome(None, failed=True, reason=KeyError())["reason"] == "KeyError"
    with pytest.raises(DataError, match="reason: must be a string or an exception, not 7"):
        outcome(None, failed=True, reason=7)  # type: ignore[arg-type]


def test_a_copy_shares_nothing() -> None:
    trial = Trial(0, {"c": [1]})
    trial.copy()["c"].append(2)
    assert trial.config == {"c": [1]}


def test_copies_share_nothing_that_can_be_changed() -> None:
    thing = object()
    value = {"a": [1, {"b": thing}]}
    again = copied(value)
    assert again == value
    again["a"][1]["b"] = None
    assert value["a"][1] == {"b": thing}


def test_the_standard_deviation() -> None:
    assert robust_sd([1.0, 2.0, 3.0, 4.0], maximise=False) == pytest.approx(1.25**0.5)
    assert robust_sd([1.0, 1.0, 1.0, 1.0, 5.0], maximise=False) == 1.6
    assert robust_sd([7.0], maximise=True) == 0.0


@pytest.mark.parametrize("maximise", [False, True])
def test_terrible_results_do_not_count_but_excellent_ones_do(maximise: bool) -> None:
    terrible = -1e30 if maximise else 1e30
    values = [1.0, 2.0, 3.0, 4.0]
    assert robust_sd([*values, terrible], maximise=maximise) == pytest.approx(1.25**0.5)
    assert robust_sd([*values, -terrible], maximise=maximise) > 1e29
