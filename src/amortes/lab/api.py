"""The JSON API: studies, recommend, predict and the rest, for instruments and other languages.

`actions` has the requests that change a study.

Every study has a version, which is also its ETag. A change with `If-Match` is made only if the
study is still at that version (else 412), one without it in any case.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from amortes.lab import learned
from amortes.lab.about import About, Prediction
from amortes.lab.errors import ConflictError
from amortes.lab.folder import MOST_LETTERS, Folder
from amortes.lab.form import build_space
from amortes.lab.paste import read_table
from amortes.lab.schemas import (
    Changed,
    ErrorView,
    NewStudy,
    Predict,
    Predicted,
    StudySummary,
    StudyView,
    TableCheck,
    TrialView,
)
from amortes.lab.study import Snapshot, Study
from amortes.optimiser import Optimizer, Recommendation, Trial

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


@router.get("/studies/{study}/recommend")
def recommend(
    study: AStudy, level: Annotated[float, Query(gt=0.001, lt=0.999)] = 0.9
) -> Recommendation:
    """The config with the best posterior mean, and what a result there is expected to be."""
    key = ("recommend", level)
    return study.ask_model(key, lambda optimizer, _: learned.recommended(optimizer, level))


@router.post("/studies/{study}/predict")
def predict(study: AStudy, form: Predict) -> list[Predicted]:
    """What is expected of configs."""
    if not study.read().having("done"):
        raise ConflictError("There is no result to learn from yet; tell one first.")
    predicted = study.ask_model(None, lambda optimizer, _: optimizer.predict(**dict(form)))
    return [Predicted(**p.to_dict()) for p in predicted]


@router.get("/studies/{study}/overview")
def overview(study: AStudy) -> dict[str, Any]:
    """Recommendation, importance, and whether it is worth going on."""
    return study.ask_model("overview", learned.overview)


@router.get("/studies/{study}/slices")
def slices(study: AStudy) -> dict[str, Any]:
    """Prediction and gain along each parameter through the recommended config."""
    return study.ask_model("slices", learned.slices)


@router.get("/studies/{study}/contour")
def contour(study: AStudy, x: str, y: str) -> dict[str, Any]:
    """Prediction, uncertainty and gain over two parameters."""
    key = ("contour", x, y)
    return study.ask_model(key, lambda opt, snapshot: learned.contour(opt, snapshot, x, y))


def changed(snapshot: Snapshot, number: int, message: str) -> Changed:
    """The answer to a change of a trial."""
    (trial,) = trial_views([snapshot.trial(number)], snapshot)
    return Changed(version=snapshot.version, message=message, trial=trial)


def _trial_view(trial: Trial, predicted: Prediction | None = None) -> TrialView:
    return TrialView(**trial.to_dict(), note=trial.reason or "", predicted=predicted)


def trial_views(trials: Sequence[Trial], snapshot: Snapshot) -> list[TrialView]:
    """Trials as answers have them, with what was expected of them."""
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
        trials=trial_views(snapshot.trials, snapshot),
        undo=snapshot.undo,
    )
