"""Who else writes to a run: `minimize(state=...)` locks its file, `amortes optimize` its folder."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from amortes.errors import FileError
from amortes.files import locked
from amortes.lab.errors import ReadOnlyError

PATIENCE = 3.0  # seconds to wait for another window's change; programs keep their lock much longer


@contextlib.contextmanager
def alone_with(state: Path) -> Iterator[None]:
    """Keep programs and other labs away from a run for the length of a change."""
    deadline = time.monotonic() + PATIENCE
    with contextlib.ExitStack() as stack:
        for place in _places(state):
            while True:
                try:
                    stack.enter_context(locked(place, "`amortes lab`"))
                    break
                except FileError:
                    if time.monotonic() > deadline:
                        raise ReadOnlyError(
                            "A program is working on this run, so it cannot be changed here. Wait "
                            "until it ends, or stop it."
                        ) from None
                    time.sleep(0.02)
        yield


def in_use(state: Path) -> bool:
    """Whether a program holds a run's lock; leaves no trace."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return False
    for place in _places(state):
        if place == state:
            place = state.with_name(f".{state.name}.lock")
        try:
            handle = os.open(place, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # a file system without locks
        finally:
            os.close(handle)
    return False


def _places(state: Path) -> list[Path]:
    """What programs lock that write to this file."""
    return [state, state.parent] if state.name == "state.json" else [state]
