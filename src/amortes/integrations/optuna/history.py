"""What the trials of a study say about one search space.

    complete         a result; a failure if it is not finite, or violates a constraint, of which
                     `trial.set_constraint` says by how much
    failed           a failure, and so is a trial that was pruned without having reported anything
    pruned           pending for ever: it has no value that compares with those of complete trials,
                     but one need not look there again. As failures, which accumulate around the
                     optimum if a pruner is strict, they would drive trials away from it
                     (docs/log.md, 2026-11-17, "Pruned trials").
    running          pending, with the parameters suggested so far or planned in this process

Trials without some parameter of the space, with another distribution for it, or with a value
outside it say nothing.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from amortes.acquisition.units import LARGEST
from amortes.integrations.optuna.space import Translation
from amortes.optimiser.space import Config
from amortes.optimiser.trials import Ledger, outcome

RECENT = datetime.timedelta(minutes=1)
"""A trial that began longer ago and has no parameters yet is not just being suggested."""


Plan = dict[str, tuple[BaseDistribution, Any]]
"""Parameters chosen for a trial, which Optuna learns of one by one: distributions and values."""


def record(
    translation: Translation, trials: Sequence[FrozenTrial], plans: dict[int, Plan]
) -> Ledger:
    """The trials that say something about the space; plans are by number."""
    ledger = Ledger(translation.space)
    for trial in trials:
        config = known(translation, trial, plans)
        if config is None or translation.space.lacking(config):
            continue
        opened = ledger.open(config)
        if trial.state == TrialState.COMPLETE:
            ledger.close(opened.number, outcome(trial.value, violation=_violation(trial)))
        elif trial.state == TrialState.FAIL or _is_refused(trial):
            ledger.close(opened.number, outcome(None, failed=True))
    return ledger


def undecided(
    translation: Translation,
    trials: Sequence[FrozenTrial],
    plans: dict[int, Plan],
    now: FrozenTrial,
) -> list[Config]:
    """What is known of the configs that other processes are just choosing for earlier trials.

    Configs of which a part is known are of any trial: the rest is chosen, but not stored yet.
    """
    configs = []
    for trial in trials:
        if trial.state != TrialState.RUNNING or not _is_recent(trial, now):
            continue
        config = known(translation, trial, plans)
        if config is None or not translation.space.lacking(config):
            continue
        if config or trial.number < now.number:
            configs.append(config)
    return configs


def known(translation: Translation, trial: FrozenTrial, plans: dict[int, Plan]) -> Config | None:
    """What is known of a trial's config, as far as it matters; None if outside the space."""
    params, distributions = trial.params, trial.distributions
    if not trial.state.is_finished() and trial.number in plans:
        plan = plans[trial.number]
        params = {name: value for name, (_, value) in plan.items()} | params
        distributions = {name: chosen for name, (chosen, _) in plan.items()} | distributions
    shared = translation.distributions.keys() & params.keys()
    if any(distributions[name] != translation.distributions[name] for name in shared):
        return None
    try:
        return translation.space.relevant(translation.to_values({n: params[n] for n in shared}))
    except ValueError:
        return None


def _violation(trial: FrozenTrial) -> float | None:
    """The largest of the constraints that the objective set; None if there are none."""
    constraints: Mapping[str, float] = getattr(trial, "constraints", {})  # since Optuna 5
    worst = max(constraints.values(), default=None)
    return None if worst is None else min(max(worst, -LARGEST), LARGEST)


def _is_refused(trial: FrozenTrial) -> bool:
    """Whether the objective pruned a trial at once, as many do with configs that cannot work."""
    return trial.state == TrialState.PRUNED and not trial.intermediate_values


def _is_recent(trial: FrozenTrial, now: FrozenTrial) -> bool:
    if trial.datetime_start is None or now.datetime_start is None:
        return False
    return now.datetime_start - trial.datetime_start < RECENT
