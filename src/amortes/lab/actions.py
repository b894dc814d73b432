"""What people do to a study: each is one change, saved at once, that can be undone."""

from collections.abc import Mapping, Sequence
from typing import Any

from amortes.errors import DataError
from amortes.lab.about import About, Prediction
from amortes.lab.errors import ConflictError, FormError, Problem
from amortes.lab.schemas import Result, Tell, decimal
from amortes.lab.study import Snapshot, Study, reopened
from amortes.lab.words import number_text, reason_text
from amortes.optimiser.numeric import Numeric
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.trials import Outcome, Trial

LEVEL = 0.9


def ask(study: Study, n: int, expected: str | None = None) -> tuple[Snapshot, list[Trial]]:
    """Suggest n trials, each with what is expected of it."""
    with study.change(f"{n} suggestion{'s' * (n > 1)}", expected) as edit:
        trials = edit.optimizer.ask(n)
        edit.about = _with_predictions(edit.optimizer, edit.about, trials)
    return edit.snapshot, trials


def tell(
    study: Study, number: int, told: Tell, expected: str | None = None
) -> tuple[Snapshot, Trial]:
    """Record the result of a pending trial; with other values than suggested, of a new one."""
    with study.change(f"the result of trial {number}", expected) as edit:
        trial = edit.snapshot.trial(number)
        if trial.status != "pending":
            raise ConflictError(f"{_already(trial)} Your entry was not saved.")
        config = trial.config if told.config is None else _checked(edit.optimizer, told.config)
        if config != trial.config:
            edit.optimizer.withdraw(trial)
        asked = trial if config == trial.config else config
        known = _tell(edit.optimizer, asked, _outcome(told))
    return edit.snapshot, known


def correct(
    study: Study, number: int, result: Result, expected: str | None = None
) -> tuple[Snapshot, Trial]:
    """Replace a result that was told."""
    with study.change(f"the correction of trial {number}", expected) as edit:
        before, state = edit.snapshot.trial(number), edit.optimizer.state
        if before.status not in ("done", "failed"):
            raise ConflictError(f"Trial {number} has no result that could be corrected.")
        trial = Trial(number, before.config, **vars(_outcome(result)))
        state["trials"][number] = trial.to_dict()
        edit.optimizer = reopened(state)
    return edit.snapshot, trial


def withdraw(study: Study, number: int, expected: str | None = None) -> Snapshot:
    """Drop a suggestion, or take back a result."""
    with study.change(f"dropping trial {number}", expected) as edit:
        trial = edit.snapshot.trial(number)
        if trial.status == "withdrawn":
            raise ConflictError(f"Trial {number} was dropped already.")
        edit.optimizer.withdraw(trial)
    return edit.snapshot


def add(
    study: Study, config: Mapping[str, Any], result: Result | None, expected: str | None = None
) -> tuple[Snapshot, Trial]:
    """A trial of one's own, to be done or done already."""
    with study.change("your own trial", expected) as edit:
        checked, state = _checked(edit.optimizer, config), edit.optimizer.state
        trial = Trial(len(state["trials"]), checked)
        if result is not None:
            trial = _tell(edit.optimizer, checked, _outcome(result))
        elif not edit.optimizer.space.allows(checked):
            text = "These values violate a constraint, or are not in the list of the study."
            raise FormError([Problem("config", text)])
        else:
            state["trials"].append(trial.to_dict())
            edit.optimizer = reopened(state)
            edit.about = _with_predictions(edit.optimizer, edit.about, [trial], own=True)
    return edit.snapshot, trial


def add_results(study: Study, trials: Sequence[Trial], expected: str | None = None) -> Snapshot:
    """Results of the past."""
    with study.change(f"{len(trials)} results from a table", expected) as edit:
        for trial in trials:
            _tell(edit.optimizer, trial.config, trial)
    return edit.snapshot


def _already(trial: Trial) -> str:
    if trial.status == "withdrawn":
        return f"Trial {trial.number} was dropped meanwhile."
    what = "failed" if trial.value is None else number_text(trial.value)
    return f"Trial {trial.number} has a result already: {what}."


def _checked(optimizer: Optimizer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The config in the types of the space; each wrong value with its field.

    Numbers may be text, and empty text is no value; values that do not matter are left out.
    """
    space = optimizer.space
    if unknown := [name for name in given if name not in space.parameters]:
        raise FormError([Problem("config", f"There is no parameter {', '.join(unknown)}.")])
    config: dict[str, Any] = {}
    problems = []
    for name, value in given.items():
        parameter = space.free.get(name)
        value = _typed(value) if isinstance(parameter, Numeric) else value
        if value is None:
            continue
        config[name] = value
        try:
            if parameter is not None:
                config[name] = parameter.check(value)
        except DataError as error:
            problems.append(Problem(f"config.{name}", f"{name}: {error}"))
    config = space.relevant(config)
    problems = [problem for problem in problems if problem.at.removeprefix("config.") in config]
    problems += [
        Problem(f"config.{name}", f"{name}: a value is missing.") for name in space.lacking(config)
    ]
    if problems:
        raise FormError(problems)
    return space.check(config)


def _typed(value: Any) -> Any:
    """A number as typed into a form; None for nothing."""
    text = decimal(value)
    try:
        return float(text) if isinstance(text, str) else text
    except ValueError:
        return value


def _outcome(result: Result) -> Outcome:
    """What a form says, checked; mistakes with their fields."""
    if result.value is None and not result.failed and result.violation is None:
        raise FormError([Problem("value", "Type the result, or say that the experiment failed.")])
    failed = result.failed or result.value is None
    if failed and result.value is not None:
        raise FormError([Problem("value", "A failed experiment has no result; clear one of them.")])
    if result.cost is not None and result.cost <= 0:
        raise FormError([Problem("cost", "The cost must be above 0.")])
    return Outcome.of(result.value, result.cost, failed, result.note or None, result.violation)


def _tell(optimizer: Optimizer, trial: Trial | Mapping[str, Any], known: Outcome | Trial) -> Trial:
    return optimizer.tell(
        trial,
        known.value,
        cost=known.cost,
        failed=known.status == "failed",
        reason=known.reason,
        violation=known.violation,
    )


def _with_predictions(
    optimizer: Optimizer, about: About, trials: Sequence[Trial], *, own: bool = False
) -> About:
    """Keep what is expected of new trials now: later, results will have changed it."""
    predictions = dict(about.predictions)
    for trial in trials:
        explanation = optimizer.explain(trial, level=LEVEL)
        kind = "own" if own else explanation.kind
        known: dict[str, float] = {}
        if explanation.prediction is not None:
            result = optimizer.predict(trial.config, level=LEVEL, observation_noise=True)
            known = {"median": result.median, "lower": result.lower, "upper": result.upper}
        reason = reason_text(explanation, kind)
        predictions[trial.number] = Prediction(kind=kind, reason=reason, **known)
    return about.model_copy(update={"predictions": predictions})
