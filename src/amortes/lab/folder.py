"""The studies of a folder: files as `Optimizer.save` writes them, and folders that hold one.

    lab/coffee/state.json    "coffee", as the lab and `amortes optimize` make them
    lab/run.json             "run.json", as `minimize(..., state=...)` makes it

An identifier is the name of a file or folder right inside the folder; anything else is refused, so
that no request can leave it.
"""

import contextlib
import itertools
import json
import re
import threading
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from amortes.errors import AmortesError
from amortes.files import write_json, write_text
from amortes.lab.about import SUFFIX, About, about_path
from amortes.lab.errors import NotFoundError
from amortes.lab.study import Snapshot, Study
from amortes.optimiser import Optimizer
from amortes.optimiser.state import FORMAT

LONGEST = 60
STATE = "state.json"
MOST_LETTERS = 255
NAME = re.compile(rf"[^\W_][^/\\:\x00-\x1f\x7f\ud800-\udfff]{{0,{MOST_LETTERS - 1}}}")
"""Of files in the folder; not hidden ones, nor what could be the path to another folder."""


@dataclass(frozen=True)
class Entry:
    """A study in the list; or, if it cannot be read, why."""

    id: str
    snapshot: Snapshot | None
    in_use: bool = False
    error: str = ""


class Folder:
    """Finds, opens and makes studies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._studies: dict[str, Study] = {}
        self._lock = threading.Lock()

    def study(self, name: str) -> Study:
        """The study of this identifier."""
        path = self._file(name)
        if path is None:
            raise NotFoundError(f"There is no study {name[:LONGEST]!r} in this folder.")
        with self._lock:
            if name not in self._studies or self._studies[name].path != path:
                self._studies[name] = Study(name, path)
            return self._studies[name]

    def entries(self) -> list[Entry]:
        """All studies, the one changed last first."""
        found = []
        for name in sorted(path.name for path in self.path.iterdir()):
            path = self._file(name)
            if path is None or not _is_run(path):
                continue
            try:
                study = self.study(name)
                found.append(Entry(name, study.read(), study.in_use))
            except (AmortesError, OSError) as error:
                found.append(Entry(name, None, error=str(error)))
        return sorted(found, key=lambda e: -e.snapshot.modified if e.snapshot else 0.0)

    def create(self, optimizer: Optimizer, about: About) -> Study:
        """Save a new study in a folder named after it."""
        base = slug(about.name)
        for count in itertools.count(1):
            name = base if count == 1 else f"{base}-{count}"
            with contextlib.suppress(FileExistsError):
                (self.path / name).mkdir(parents=True)
                break
        state = self.path / name / STATE
        write_text(about_path(state), about.model_dump_json(indent=2) + "\n")
        write_json(state, optimizer.state)
        return self.study(name)

    def _file(self, name: str) -> Path | None:
        """The run's file, or None if there cannot be one."""
        if not NAME.fullmatch(name):
            return None
        path = self.path / name
        try:
            if path.is_dir():
                path = path / STATE
            elif path.suffix != ".json" or name.endswith(SUFFIX):
                return None
            inside = path.resolve().is_relative_to(self.path.resolve())  # links may lead elsewhere
            return path if inside and path.is_file() else None
        except (OSError, ValueError):  # too long, or nothing that could be a name here
            return None


def slug(name: str) -> str:
    """A name as that of a folder: letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:LONGEST].strip("-") or "study"


def _is_run(path: Path) -> bool:
    """Whether a file says that it is a run; others are none of our business."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
    return f'"format": {json.dumps(FORMAT)}' in head
