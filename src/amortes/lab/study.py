"""One study: the run in a file, read when it has changed, changed by one at a time.

A change is made to the optimiser, written to the file and only then confirmed, all under a lock of
this process and one between processes. Readers get a snapshot and never wait for a suggestion that
is being computed.
"""

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from amortes.errors import AmortesError, FileError
from amortes.files import write_text
from amortes.lab.about import (
    MOST,
    About,
    about_path,
    digest,
    read_about,
    reverted,
    undo_entry,
    usable,
)
from amortes.lab.errors import ChangedError, ConflictError, NotFoundError, ReadOnlyError
from amortes.lab.programs import alone_with, in_use, readable
from amortes.optimiser import Optimizer, Space, Trial
from amortes.optimiser.insight import Goal
from amortes.optimiser.state import fingerprint
from amortes.optimiser.trials import best_trial
from amortes.pretrained import load_pretrained, names

T = TypeVar("T")
Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Snapshot:
    """A study as it was at one moment."""

    id: str
    version: str  # changes with the run and with what the lab knows of it
    about: About
    owned: bool  # whether the lab may change it; else it is a program's
    space: Space
    goal: Goal
    acquisition: str
    trials: list[Trial]
    modified: float  # when the run was written, in seconds of the epoch
    undo: str | None  # what can be taken back
    lacks: list[str]  # what only its program has, so that only that can go on with it

    def trial(self, number: int) -> Trial:
        """A trial by its number."""
        if not 0 <= number < len(self.trials):
            raise NotFoundError(f"There is no trial {number} in this study.")
        return self.trials[number]

    def having(self, *status: str) -> list[Trial]:
        """The trials with one of these states."""
        return [trial for trial in self.trials if trial.status in status]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, one that is allowed if there is any."""
        return best_trial(self.trials, self.space, maximise=self.goal == "maximize")


@dataclass
class Edit:
    """A change under way: what may be changed or replaced, and the study before and after it."""

    optimizer: Optimizer
    about: About
    snapshot: Snapshot


class Study:
    """The file of a run, and the optimiser in it."""

    def __init__(self, name: str, path: Path) -> None:
        self.id, self.path = name, path
        self._lock = threading.RLock()
        self._signature: Signature | None = None
        self._snapshot: Snapshot | None = None
        self._optimizer: Optimizer | None = None
        self._kept: dict[Any, Any] = {}  # what was computed for this version

    def read(self) -> Snapshot:
        """The study as it is now; during a change, as it was before."""
        known = self._snapshot
        if not self._lock.acquire(blocking=known is None) and known is not None:
            return known
        try:
            return self._refresh()
        finally:
            self._lock.release()

    @property
    def in_use(self) -> bool:
        """Whether a program is working on it."""
        if not self._lock.acquire(blocking=False):
            return False  # we are
        try:
            return in_use(self.path)
        finally:
            self._lock.release()

    def ask_model(self, key: Any, question: Callable[[Optimizer, Snapshot], T]) -> T:
        """The answer of the optimiser to a question.

        With a key, which stands for the question, it is kept until the study changes.
        """
        with self._lock:
            snapshot = self._refresh()
            assert self._optimizer is not None
            if key is None:
                return question(self._optimizer, snapshot)
            if key not in self._kept:
                self._kept[key] = question(self._optimizer, snapshot)
            answer: T = self._kept[key]
            return answer

    @contextlib.contextmanager
    def change(self, label: str, expected: str | None = None) -> Iterator[Edit]:
        """Save what the block does to the optimiser, unless it fails.

        `expected` is the version its user has seen: `ChangedError` if there is another one by now.
        """
        with self._writing(expected) as edit:
            before = edit.optimizer.state
            try:
                yield edit
                self._write(before, edit.optimizer.state, edit.about, label)
            except BaseException:
                self._forget()
                raise
            edit.snapshot = self._refresh(edit.optimizer)

    def undo(self, *, expected: str | None = None) -> tuple[Snapshot, str]:
        """Take back the last change; its label."""
        with self._writing(expected) as edit:
            entries = usable(edit.about.undo, self.path.read_bytes())
            if not entries:
                raise ConflictError("There is nothing to undo.")
            state = reverted(edit.optimizer.state, entries[-1])
            self._forget()
            restored = reopened(state)
            # The run first: with the shorter list of entries alone, nothing could be undone.
            write_text(self.path, _text(state))
            self._write_about(edit.about.model_copy(update={"undo": entries[:-1]}))
            return self._refresh(restored), entries[-1].label

    def describe(self, *, expected: str | None = None, **fields: Any) -> Snapshot:
        """Change what is known beside the run, such as its name."""
        with self._writing(expected) as edit:
            self._write_about(edit.about.model_copy(update=fields))
            return self._refresh(edit.optimizer)

    def adopt(self) -> Snapshot:
        """Make the run of a program one of the lab's."""
        with self._lock, alone_with(self.path):
            snapshot = self._refresh()
            if snapshot.lacks:
                raise ReadOnlyError(
                    f"This run has {' and '.join(snapshot.lacks)}, which its file cannot contain. "
                    f"Continue it in its program."
                )
            if not snapshot.owned:
                self._write_about(snapshot.about)
            return self._refresh()

    @contextlib.contextmanager
    def _writing(self, expected: str | None) -> Iterator[Edit]:
        """The block of a change: alone with the files, which are what the user has seen."""
        with self._lock, alone_with(self.path):
            snapshot = self._refresh()
            if not snapshot.owned:
                raise ReadOnlyError(
                    "This run belongs to a program. To continue it here, take it over first."
                )
            if expected is not None and expected != snapshot.version:
                raise ChangedError(
                    "The study has changed since this page was loaded, in another window or by a "
                    "program. Nothing of yours was saved; look at what is new and try again."
                )
            assert self._optimizer is not None
            yield Edit(self._optimizer, snapshot.about, snapshot)

    def _write(
        self, before: dict[str, Any], after: dict[str, Any], about: About, label: str
    ) -> None:
        text = _text(after)
        entries = usable(about.undo, self.path.read_bytes())
        entries.append(undo_entry(before, after, label, text.encode()))
        # The run last: it is what a change is confirmed by.
        self._write_about(about.model_copy(update={"undo": entries[-MOST:]}))
        write_text(self.path, text)

    def _write_about(self, about: About) -> None:
        write_text(about_path(self.path), about.model_dump_json(indent=2) + "\n")

    def _forget(self) -> None:
        self._signature, self._optimizer = None, None
        self._kept = {}

    def _refresh(self, optimizer: Optimizer | None = None) -> Snapshot:
        """Read the files if they have changed; `optimizer` is what was just written, if known."""
        signature = tuple(_stamp(path) for path in (self.path, about_path(self.path)))
        if self._snapshot is not None and signature == self._signature:
            return self._snapshot
        content, beside = self.path.read_bytes(), about_path(self.path)
        known = beside.read_bytes() if beside.exists() else b""
        name = self.path.parent.name if self.path.name == "state.json" else self.path.stem
        about = read_about(known, beside) if known else About(name=name)
        lacks: list[str] = []
        if optimizer is None:
            optimizer, lacks = _load(content, self.path)
        undo = usable(about.undo, content)
        self._forget()
        self._signature, self._optimizer = signature, optimizer
        self._snapshot = Snapshot(
            id=self.id,
            version=digest(content + b"\0" + known),
            about=about,
            owned=bool(known) and not lacks,
            space=optimizer.space,
            goal=optimizer.goal,
            acquisition=optimizer.state["acquisition"],
            trials=optimizer.trials,
            modified=self.path.stat().st_mtime,
            undo=undo[-1].label if undo else None,
            lacks=lacks,
        )
        return self._snapshot


def _text(state: dict[str, Any]) -> str:
    """As `Optimizer.save` writes it."""
    return json.dumps(state, indent=2) + "\n"


def reopened(state: dict[str, Any]) -> Optimizer:
    """The optimiser of a state, with the network that it had."""
    return Optimizer.from_state(state, network=_network(state["network"]))


def _load(content: bytes, path: Path) -> tuple[Optimizer, list[str]]:
    """The optimiser in a file, and what only its program has."""
    try:
        state, lacks = readable(json.loads(content))
        digest = state.get("network") if isinstance(state, dict) else None
        # Only to look at: with a cost function nothing is asked for here.
        cost = (lambda config: 1.0) if "a cost function" in lacks else None
        return Optimizer.from_state(state, network=_network(str(digest)), cost=cost), lacks
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileError(f"{path} is not valid JSON ({error}).") from None
    except AmortesError as error:
        raise FileError(f"{path}: {error}") from None


@functools.cache
def _network(digest: str) -> str | None:
    """The name of the network with this fingerprint; None, the default, if none comes with us."""
    return next((n for n in names() if fingerprint(load_pretrained(n)[0]) == digest), None)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
