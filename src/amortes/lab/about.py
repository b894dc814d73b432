"""What the lab knows of a study beyond the run itself, in a file beside it.

    run.json        the run, as `Optimizer.save` writes it
    run.lab.json    its name and units, what was predicted when a trial was suggested, undo

A run with such a file belongs to the lab; any other one to the program that made it, and is only
shown. Nothing here is needed to go on with the run in Python.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amortes.errors import FileError

SUFFIX = ".lab.json"


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
    """How to take back one change; see `journal`."""

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
