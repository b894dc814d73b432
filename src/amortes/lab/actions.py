"""What people do to a study: each is one change, saved at once, that can be undone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path

from amortes.errors import DataError
from amortes.lab.about import About, Prediction
from amortes.lab.api import ERRORS, AStudy, Expected, changed, trial_views
from amortes.lab.errors import ConflictError, FormError, Problem
from amortes.lab.paste import read_table
from amortes.lab.schemas import (
    Ask,
    Asked,
    Changed,
    EditStudy,
    OwnTrial,
    Result,
    Table,
    Tell,
    decimal,
)
from amortes.lab.study import reopened
from amortes.lab.words import number_text, reason_text
from amortes.optimiser import Optimizer, Trial
from amortes.optimiser.numeric import Numeric
from amortes.optimiser.trials import outcome

LEVEL = 0.9
TrialNumber = Annotated[int, Path(ge=0, le=10**6)]
router = APIRouter(prefix="/api/studies/{study}", responses=ERRORS)


@router.patch("")
def edit_study(study: AStudy, form: EditStudy, expected: Expected) -> Changed:
    """Change the name, notes, units or number of suggestions at a time."""
    snapshot = study.describe(expected=expected, **form.model_dump(exclude_none=True))
    return Changed(version=snapshot.version, message="Saved.")


@router.post("/adopt")
def adopt(study: AStudy) -> Changed:
    """Take over the run of a program, to go on with it here."""
    return Changed(version=study.adopt().version, message="This run can be changed here now.")


@router.post("/undo")
def undo(study: AStudy, expected: Expected) -> Changed:
    """Take back the last change."""
    snapshot, label = study.undo(expected=expected)
    return Changed(version=snapshot.version, message=f"Undone: {label}.")


@router.post("/ask")
def ask(study: AStudy, form: Ask, expected: Expected) -> Asked:
    """Suggest trials, to be done in any order, each with what is expected of it."""
    with study.change(f"{form.n} suggestion{'s' * (form.n > 1)}", expected) as edit:
        trials = edit.optimizer.ask(form.n)
        edit.about = _with_predictions(edit.optimizer, edit.about, trials)
    return Asked(version=edit.snapshot.version, trials=trial_views(trials, edit.snapshot))


@router.post("/trials", status_code=201)
def add(study: AStudy, form: OwnTrial, expected: Expected) -> Changed:
    """Add a trial of your own: to be done, or with its result."""
    with study.change("your own trial", expected) as edit:
        config, state = _checked(edit.optimizer, form.config), edit.optimizer.state
        trial = Trial(len(state["trials"]), config)
        if form.result is not None:
            trial = edit.optimizer.tell(config, **_told(form.result))
        elif not edit.optimizer.space.allows(config):
            text = "These values violate a constraint, or are not in the list of the study."
            raise FormError([Problem("config", text)])
        else:
            state["trials"].append(trial.to_dict())
            edit.optimizer = reopened(state)
            edit.about = _with_predictions(edit.optimizer, edit.about, [trial], own=True)
    return changed(edit.snapshot, trial.number, f"Trial {trial.number} was added.")


@router.post("/trials/{number}/tell")
def tell(study: AStudy, number: TrialNumber, form: Tell, expected: Expected) -> Changed:
    """Report the result of a pending trial; with `config` if other values were used."""
    with study.change(f"the result of trial {number}", expected) as edit:
        trial = edit.snapshot.trial(number)
        if trial.status != "pending":
            raise ConflictError(f"{_already(trial)} Your entry was not saved.")
        config = trial.config if form.config is None else _checked(edit.optimizer, form.config)
        if config != trial.config:
            edit.optimizer.withdraw(trial)
        asked = trial if config == trial.config else config
        known = edit.optimizer.tell(asked, **_told(form))
    instead = "" if known.number == number else f" It replaces trial {number}."
    return changed(edit.snapshot, known.number, _saved(known) + instead)


@router.put("/trials/{number}/result")
def correct(study: AStudy, number: TrialNumber, form: Result, expected: Expected) -> Changed:
    """Replace the result of a trial."""
    with study.change(f"the correction of trial {number}", expected) as edit:
        before, state = edit.snapshot.trial(number), edit.optimizer.state
        if before.status not in ("done", "failed"):
            raise ConflictError(f"Trial {number} has no result that could be corrected.")
        trial = Trial(number, before.config, **outcome(**_told(form)))
        state["trials"][number] = trial.to_dict()
        edit.optimizer = reopened(state)
    return changed(edit.snapshot, number, _saved(trial))


@router.post("/trials/{number}/withdraw")
def withdraw(study: AStudy, number: TrialNumber, expected: Expected) -> Changed:
    """Drop a suggestion, or take back a result."""
    with study.change(f"dropping trial {number}", expected) as edit:
        trial = edit.snapshot.trial(number)
        if trial.status == "withdrawn":
            raise ConflictError(f"Trial {number} was dropped already.")
        edit.optimizer.withdraw(trial)
    return changed(edit.snapshot, number, f"Trial {number} was dropped.")


@router.post("/table")
def add_table(study: AStudy, form: Table, expected: Expected) -> Changed:
    """Add the results in a table with a header."""
    known = study.read()
    trials = read_table(form.table, known.space, known.about.value)
    with study.change(f"{len(trials)} results from a table", expected) as edit:
        for trial in trials:
            edit.optimizer.tell(trial.config, **trial.told)
    many = f"{len(trials)} results were added."
    said = "One result was added." if len(trials) == 1 else many
    return Changed(version=edit.snapshot.version, message=said)


def _saved(trial: Trial) -> str:
    what = "as failed" if trial.value is None else f"with {number_text(trial.value)}"
    return f"Trial {trial.number} is saved {what}."


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


def _told(result: Result) -> dict[str, Any]:
    """What a form says, as arguments of `tell`; mistakes with their fields."""
    if result.value is None and not result.failed and result.violation is None:
        raise FormError([Problem("value", "Type the result, or say that the experiment failed.")])
    failed = result.failed or result.value is None
    if failed and result.value is not None:
        raise FormError([Problem("value", "A failed experiment has no result; clear one of them.")])
    if result.cost is not None and result.cost <= 0:
        raise FormError([Problem("cost", "The cost must be above 0.")])
    told = result.model_dump(include={"value", "cost", "violation"})
    return told | {"failed": failed, "reason": result.note or None}


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
