import datetime
import math
from typing import Any

import pytest
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from amortes.integrations.optuna.history import RECENT, Plan, known, record, undecided
from amortes.integrations.optuna.space import Structure, Translation
from amortes.optimiser.conditions import Condition

SPACE: dict[str, BaseDistribution] = {"n": IntDistribution(1, 5), "x": FloatDistribution(0, 1)}
NOON = datetime.datetime(2026, 1, 1, 12)


@pytest.fixture
def translation() -> Translation:
    return Translation(Structure(SPACE, {}))


def trial(
    number: int,
    state: TrialState,
    params: dict[str, Any],
    *,
    value: float | None = None,
    began: datetime.datetime = NOON,
    **other: BaseDistribution,
) -> FrozenTrial:
    """A trial with the distributions of SPACE, or others."""
    distributions = {name: (SPACE | other)[name] for name in params}
    made = create_trial(state=state, value=value, params=params, distributions=distributions)
    made.number, made.datetime_start = number, began
    return made


def test_states_become_results_failures_and_pending_points(translation: Translation) -> None:
    params = {"x": 0.5, "n": 2}
    trials = [
        trial(0, TrialState.COMPLETE, params, value=3.0),
        trial(1, TrialState.COMPLETE, params, value=math.inf),
        trial(2, TrialState.PRUNED, params),
        trial(3, TrialState.FAIL, params),
        trial(4, TrialState.RUNNING, params),
        trial(5, TrialState.WAITING, {}),
        trial(6, TrialState.PRUNED, params),
    ]
    trials[6].intermediate_values = {1: 0.7}
    ledger = record(translation, trials, {})
    statuses = [t.status for t in ledger.trials]
    assert statuses == ["done", "failed", "failed", "failed", "pending", "pending"]
    assert ledger.values().tolist() == [3.0]
    assert ledger.trials[0].config == {"x": 0.5, "n": 1}  # one step above the lowest


def test_trials_of_other_spaces_say_nothing(translation: Translation) -> None:
    trials = [
        trial(0, TrialState.FAIL, {"x": 0.5}),
        trial(1, TrialState.COMPLETE, {"x": 0.5, "n": 2}, value=1.0, n=IntDistribution(1, 6)),
    ]
    beyond = trial(2, TrialState.COMPLETE, {"x": 0.5, "n": 2}, value=1.0)
    beyond.params = {"x": 7.0, "n": 2}
    assert record(translation, [*trials, beyond], {}).trials == []


def test_plans_complete_running_trials_only(translation: Translation) -> None:
    plan: Plan = {"x": (SPACE["x"], 0.9), "n": (SPACE["n"], 4)}
    running = trial(0, TrialState.RUNNING, {"x": 0.5})
    assert known(translation, running, {0: plan}) == {"x": 0.5, "n": 3}
    assert known(translation, running, {1: plan}) == {"x": 0.5}
    assert known(translation, trial(0, TrialState.FAIL, {"x": 0.5}), {0: plan}) == {"x": 0.5}
    assert len(record(translation, [running], {0: plan}).points("pending")) == 1


def test_who_is_just_choosing(translation: Translation) -> None:
    now = trial(5, TrialState.RUNNING, {})
    planned: Plan = {"x": (SPACE["x"], 0.9), "n": (SPACE["n"], 4)}
    trials = [
        trial(0, TrialState.RUNNING, {}, began=NOON - 2 * RECENT),  # has died, or needs nothing
        trial(1, TrialState.RUNNING, {}),
        trial(2, TrialState.RUNNING, {"x": 0.1, "n": 2}),  # known
        trial(3, TrialState.RUNNING, {}),  # planned in this process
        trial(4, TrialState.COMPLETE, {"x": 0.2}, value=1.0),
        trial(6, TrialState.RUNNING, {}),  # will take this one into account itself
        trial(7, TrialState.RUNNING, {"x": 0.3}),  # is half way through its suggestions
    ]
    assert undecided(translation, trials, {3: planned}, now) == [{}, {"x": 0.3}]


def test_what_does_not_matter_may_be_missing() -> None:
    translation = Translation(Structure(SPACE, {"x": Condition("n", (1.0, 2.0))}))
    trials = [
        trial(0, TrialState.COMPLETE, {"n": 2, "x": 0.1}, value=1.0),
        trial(1, TrialState.COMPLETE, {"n": 4}, value=2.0),
        trial(2, TrialState.COMPLETE, {"n": 1}, value=3.0),  # lacks x
        trial(3, TrialState.RUNNING, {"n": 5}),
    ]
    ledger = record(translation, trials, {})
    assert [t.config for t in ledger.trials] == [
        {"n": 1, "x": 0.1},
        {"n": 3},
        {"n": 4},
    ]
