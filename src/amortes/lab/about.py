"""What the lab knows of a study beyond the run itself, in a file beside it.

    run.json        the run, as `Optimizer.save` writes it
    run.lab.json    its name and units, what was predicted when a trial was suggested, undo

A run with such a file belongs to the lab; any other one to the program that made it, and is only
shown. Nothing here is needed to go on with the run in Python.

Undo. A change touches few trials, so an entry keeps those as they were, how many there were, and
the queue. It names the file it leads from by its digest: after a change by another program there is
nothing to undo, and an entry whose change was never written (a kill in between) is passed over.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amortes.errors import FileError

SUFFIX = ".lab.json"
MOST = 100  # changes that can be taken back


class Prediction(BaseModel):
    """What was expected of a trial when it was suggested, and why it was."""

    model_config = ConfigDict(frozen=True)

    median: float | None = None
    lower: float | None = None
    upper: float | None = None
    level: float = 0.9
    reason: str = ""
    kind: str = ""


class Undo(BaseModel):
    """How to take back one change."""

    model_config = ConfigDict(frozen=True)

    label: str
    after: str  # digest of the run's file after the change: of any other, nothing can be taken back
    count: int
    changed: list[dict[str, Any]]
    queue: list[dict[str, Any]]


class About(BaseModel):
    """Name, units and wishes of a study."""

    model_config = ConfigDict(frozen=True)

    format: str = "amortes-lab"
    name: str
    notes: str = ""
    value: str = "result"  # what is measured
    unit: str = ""
    units: dict[str, str] = Field(default_factory=dict)  # units of parameters
    batch: int = 1  # suggestions at a time
    noisy: bool = True
    predictions: dict[int, Prediction] = Field(default_factory=dict)
    undo: list[Undo] = Field(default_factory=list)


def about_path(state: Path) -> Path:
    """The file beside a run's."""
    return state.with_name(state.stem + SUFFIX)


def read_about(text: bytes, path: Path) -> About:
    """What a file says; a damaged one is a `FileError`."""
    try:
        about = About.model_validate_json(text)
    except ValidationError as error:
        raise FileError(
            f"{path} is damaged ({error.error_count()} wrong entries). Without this file the run "
            f"itself, which is in the file beside it, can be opened again."
        ) from None
    if about.format != About.model_fields["format"].default:
        raise FileError(f"{path} is of format {about.format!r}, not amortes-lab.")
    return about


def digest(content: bytes) -> str:
    """16 hexadecimal digits of a file's content."""
    return hashlib.sha256(content).hexdigest()[:16]


def undo_entry(
    before: Mapping[str, Any], after: Mapping[str, Any], label: str, content: bytes
) -> Undo:
    """How to get from the state `after`, written as `content`, back to `before`."""
    trials: Sequence[dict[str, Any]] = after["trials"]
    changed = [
        trial for i, trial in enumerate(before["trials"]) if i >= len(trials) or trials[i] != trial
    ]
    return Undo(
        label=label,
        after=digest(content),
        count=len(before["trials"]),
        changed=changed,
        queue=list(before["queue"]),
    )


def reverted(state: Mapping[str, Any], undo: Undo) -> dict[str, Any]:
    """The state before the change."""
    trials = list(state["trials"][: undo.count])
    for trial in undo.changed:
        trials[trial["number"]] = trial
    return {**state, "trials": trials, "queue": undo.queue}


def usable(entries: Sequence[Undo], content: bytes) -> list[Undo]:
    """The entries that lead to the file with this content."""
    now = digest(content)
    for last in range(len(entries), 0, -1):
        if entries[last - 1].after == now:
            return list(entries[:last])
    return []
