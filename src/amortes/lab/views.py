"""Studies and trials as answers of the API."""

from collections.abc import Sequence

from amortes.lab.about import Prediction
from amortes.lab.folder import Entry
from amortes.lab.schemas import StudySummary, StudyView, TrialView
from amortes.lab.study import Snapshot
from amortes.optimiser.trials import Trial


def trial_view(trial: Trial, predicted: Prediction | None = None) -> TrialView:
    """A trial with what was predicted of it."""
    return TrialView(**trial.to_dict(), note=trial.reason or "", predicted=predicted)


def trial_views(trials: Sequence[Trial], snapshot: Snapshot) -> list[TrialView]:
    """Trials of a study with what was predicted of them."""
    return [trial_view(trial, snapshot.about.predictions.get(trial.number)) for trial in trials]


def summary(snapshot: Snapshot, in_use: bool) -> StudySummary:
    """A study without its trials."""
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


def summaries(entries: list[Entry]) -> list[StudySummary]:
    """The studies that can be read."""
    return [summary(entry.snapshot, entry.in_use) for entry in entries if entry.snapshot]


def study_view(snapshot: Snapshot, in_use: bool) -> StudyView:
    """A study with its trials."""
    return StudyView(
        **dict(summary(snapshot, in_use)),
        **snapshot.about.model_dump(include={"notes", "noisy", "batch", "units"}),
        space=snapshot.space.to_dict(),
        trials=trial_views(snapshot.trials, snapshot),
        undo=snapshot.undo,
    )
