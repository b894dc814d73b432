"""Studies and trials as answers of the API."""

from amortes.lab.folder import Entry
from amortes.lab.schemas import StudySummary, StudyView, TrialView
from amortes.lab.study import Snapshot
from amortes.optimiser.trials import Trial


def trial_view(trial: Trial, snapshot: Snapshot) -> TrialView:
    """A trial with what was predicted of it."""
    return TrialView(
        number=trial.number,
        config=trial.config,
        status=trial.status,
        value=trial.value,
        cost=trial.cost,
        violation=trial.violation,
        note=trial.reason or "",
        predicted=snapshot.about.predictions.get(trial.number),
    )


def summary(snapshot: Snapshot, in_use: bool) -> StudySummary:
    """A study without its trials."""
    best = snapshot.best
    return StudySummary(
        id=snapshot.id,
        name=snapshot.about.name,
        version=snapshot.version,
        goal=snapshot.goal,
        value=snapshot.about.value,
        unit=snapshot.about.unit,
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
    about = snapshot.about
    return StudyView(
        **dict(summary(snapshot, in_use)),
        notes=about.notes,
        noisy=about.noisy,
        batch=about.batch,
        units=about.units,
        space=snapshot.space.to_dict(),
        trials=[trial_view(trial, snapshot) for trial in snapshot.trials],
        undo=snapshot.undo,
    )
