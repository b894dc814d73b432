"""The JSON API: ask, tell, recommend, predict and the rest, for instruments and other languages.

Every study has a version, which is also its ETag. A change with `If-Match` is made only if the
study is still at that version (else 412), one without it in any case.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from amortes.lab import actions, learned
from amortes.lab.about import About, Prediction
from amortes.lab.errors import ConflictError
from amortes.lab.folder import MOST_LETTERS, Folder
from amortes.lab.form import build_space
from amortes.lab.paste import read_table
from amortes.lab.schemas import (
    Ask,
    Asked,
    Changed,
    EditStudy,
    ErrorView,
    NewStudy,
    OwnTrial,
    Predict,
    Predicted,
    Recommended,
    Result,
    StudySummary,
    StudyView,
    Table,
    TableCheck,
    Tell,
    TrialView,
)
from amortes.lab.study import Snapshot, Study
from amortes.lab.words import number_text
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.trials import Trial

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorView, "description": text}
    for status, text in {
        401: "The token is missing or wrong.",
        404: "No such study or trial.",
        409: "The study or trial is not in a state for this.",
        412: "The study has changed since the version in If-Match.",
        422: "Something in the request is wrong.",
        423: "The run belongs to a program.",
    }.items()
}
router = APIRouter(prefix="/api", responses=ERRORS)


def folder_of(request: Request) -> Folder:
    """The folder of studies."""
    folder: Folder = request.app.state.folder
    return folder


def study_of(request: Request, study: Annotated[str, Path(max_length=MOST_LETTERS)]) -> Study:
    """The study in the address."""
    return folder_of(request).study(study)


def version_of(if_match: Annotated[str | None, Header()] = None) -> str | None:
    """The version that the user has seen, if given."""
    return None if if_match in (None, "*") else str(if_match).strip('"')


AFolder = Annotated[Folder, Depends(folder_of)]
AStudy = Annotated[Study, Depends(study_of)]
Expected = Annotated[str | None, Depends(version_of)]
TrialNumber = Annotated[int, Path(ge=0, le=10**6)]


@router.get("/studies")
def list_studies(folder: AFolder) -> list[StudySummary]:
    """All studies of the folder, the one changed last first."""
    return [_summary(entry.snapshot, entry.in_use) for entry in folder.entries() if entry.snapshot]


@router.post("/studies", status_code=201)
def create_study(form: NewStudy, folder: AFolder) -> StudyView:
    """Make a study."""
    space = build_space(form)
    value = form.value or "result"
    past = read_table(form.table, space, value) if form.table.strip() else []
    optimizer = Optimizer(
        space, form.goal, acquisition="auto" if form.noisy else "logei", start=past
    )
    about = About(
        **form.model_dump(include={"name", "notes", "unit", "batch", "noisy"}),
        value=value,
        units={entry.name: entry.unit for entry in form.parameters if entry.unit},
    )
    study = folder.create(optimizer, about)
    return _study_view(study.read(), in_use=False)


@router.post("/check-table")
def check_table(form: TableCheck) -> list[TrialView]:
    """What a table of past results says, before the study is made."""
    trials = read_table(form.table, build_space(form), form.value)
    return [_trial_view(trial) for trial in trials]


@router.get("/studies/{study}", responses={304: {"description": "It has not changed."}})
def get_study(
    study: AStudy,
    response: Response,
    if_none_match: Annotated[str | None, Header()] = None,
) -> StudyView:
    """A study with all its trials; 304 if it is still at the version in If-None-Match."""
    snapshot, in_use = study.read(), study.in_use
    # A program that begins or ends is news too.
    tag = f'"{snapshot.version}{"-in-use" * in_use}"'
    if if_none_match == tag:
        return Response(status_code=304, headers={"etag": tag})  # type: ignore[return-value]
    response.headers["etag"] = tag
    return _study_view(snapshot, in_use)


@router.patch("/studies/{study}")
def edit_study(study: AStudy, form: EditStudy, expected: Expected) -> Changed:
    """Change the name, notes, units or number of suggestions at a time."""
    fields = form.model_dump(exclude_none=True)
    snapshot = study.describe(expected=expected, **fields)
    return Changed(version=snapshot.version, message="Saved.")


@router.post("/studies/{study}/adopt")
def adopt(study: AStudy) -> Changed:
    """Take over the run of a program, to go on with it here."""
    return Changed(version=study.adopt().version, message="This run can be changed here now.")


@router.post("/studies/{study}/ask")
def ask(study: AStudy, form: Ask, expected: Expected) -> Asked:
    """Suggest trials, to be done in any order."""
    snapshot, trials = actions.ask(study, form.n, expected)
    return Asked(version=snapshot.version, trials=_trial_views(trials, snapshot))


@router.post("/studies/{study}/trials", status_code=201)
def add(study: AStudy, form: OwnTrial, expected: Expected) -> Changed:
    """Add a trial of your own: to be done, or with its result."""
    snapshot, trial = actions.add(study, form.config, form.result, expected)
    return _changed(snapshot, trial.number, f"Trial {trial.number} was added.")


@router.post("/studies/{study}/trials/{number}/tell")
def tell(study: AStudy, number: TrialNumber, form: Tell, expected: Expected) -> Changed:
    """Report the result of a pending trial; with `config` if other values were used."""
    snapshot, trial = actions.tell(study, number, form, expected)
    instead = "" if trial.number == number else f" It replaces trial {number}."
    return _changed(snapshot, trial.number, _said(trial.value, trial.number) + instead)


@router.put("/studies/{study}/trials/{number}/result")
def correct(study: AStudy, number: TrialNumber, form: Result, expected: Expected) -> Changed:
    """Replace the result of a trial."""
    snapshot, trial = actions.correct(study, number, form, expected)
    return _changed(snapshot, number, _said(trial.value, number))


@router.post("/studies/{study}/trials/{number}/withdraw")
def withdraw(study: AStudy, number: TrialNumber, expected: Expected) -> Changed:
    """Drop a suggestion, or take back a result."""
    snapshot = actions.withdraw(study, number, expected)
    return _changed(snapshot, number, f"Trial {number} was dropped.")


@router.post("/studies/{study}/table")
def add_table(study: AStudy, form: Table, expected: Expected) -> Changed:
    """Add the results in a table with a header."""
    snapshot = study.read()
    trials = read_table(form.table, snapshot.space, snapshot.about.value)
    snapshot = actions.add_results(study, trials, expected)
    count = len(trials)
    said = "One result was added." if count == 1 else f"{count} results were added."
    return Changed(version=snapshot.version, message=said)


@router.post("/studies/{study}/undo")
def undo(study: AStudy, expected: Expected) -> Changed:
    """Take back the last change."""
    snapshot, label = study.undo(expected=expected)
    return Changed(version=snapshot.version, message=f"Undone: {label}.")


@router.get("/studies/{study}/recommend")
def recommend(
    study: AStudy, level: Annotated[float, Query(gt=0.001, lt=0.999)] = 0.9
) -> Recommended:
    """The config with the best posterior mean, and what a result there is expected to be."""

    def question(optimizer: Optimizer, snapshot: Snapshot) -> Recommended:
        _need_results(snapshot)
        return Recommended(**vars(optimizer.recommend(level=level)))

    return study.ask_model(("recommend", level), question)


@router.post("/studies/{study}/predict")
def predict(study: AStudy, form: Predict) -> list[Predicted]:
    """What is expected of configs."""

    def question(optimizer: Optimizer, snapshot: Snapshot) -> list[Predicted]:
        _need_results(snapshot)
        predicted = optimizer.predict(
            form.configs, level=form.level, observation_noise=form.observation_noise
        )
        return [Predicted(**p.to_dict()) for p in predicted]

    return study.ask_model(None, question)


@router.get("/studies/{study}/overview")
def overview(study: AStudy) -> dict[str, Any]:
    """Recommendation, importance, and whether it is worth going on."""
    return learned.finite(study.ask_model("overview", learned.overview))


@router.get("/studies/{study}/slices")
def slices(study: AStudy) -> dict[str, Any]:
    """Prediction and gain along each parameter through the recommended config."""
    return learned.finite(study.ask_model("slices", learned.slices))


@router.get("/studies/{study}/contour")
def contour(study: AStudy, x: str, y: str) -> dict[str, Any]:
    """Prediction, uncertainty and gain over two parameters."""

    def question(optimizer: Optimizer, snapshot: Snapshot) -> dict[str, Any]:
        return learned.contour(optimizer, snapshot, x, y)

    return learned.finite(study.ask_model(("contour", x, y), question))


def _changed(snapshot: Snapshot, number: int, message: str) -> Changed:
    (trial,) = _trial_views([snapshot.trial(number)], snapshot)
    return Changed(version=snapshot.version, message=message, trial=trial)


def _said(value: float | None, number: int) -> str:
    what = "as failed" if value is None else f"with {number_text(value)}"
    return f"Trial {number} is saved {what}."


def _need_results(snapshot: Snapshot) -> None:
    if not snapshot.having("done"):
        raise ConflictError("There is no result to learn from yet; tell one first.")


def _trial_view(trial: Trial, predicted: Prediction | None = None) -> TrialView:
    return TrialView(**trial.to_dict(), note=trial.reason or "", predicted=predicted)


def _trial_views(trials: Sequence[Trial], snapshot: Snapshot) -> list[TrialView]:
    return [_trial_view(trial, snapshot.about.predictions.get(trial.number)) for trial in trials]


def _summary(snapshot: Snapshot, in_use: bool) -> StudySummary:
    best = snapshot.best
    return StudySummary(
        **snapshot.about.model_dump(include={"name", "value", "unit"}),
        id=snapshot.id,
        version=snapshot.version,
        goal=snapshot.goal,
        owned=snapshot.owned,
        in_use=in_use,
        results=len(snapshot.having("done")),
        failed=len(snapshot.having("failed")),
        pending=len(snapshot.having("pending")),
        best=None if best is None else best.value,
        modified=snapshot.modified,
    )


def _study_view(snapshot: Snapshot, in_use: bool) -> StudyView:
    return StudyView(
        **dict(_summary(snapshot, in_use)),
        **snapshot.about.model_dump(include={"notes", "noisy", "batch", "units"}),
        space=snapshot.space.to_dict(),
        trials=_trial_views(snapshot.trials, snapshot),
        undo=snapshot.undo,
    )
