"""Runs of programs: whether one is at work on a run, and what of it can be read without it.

`minimize(state=...)` locks its file, `amortes optimize` its folder. A run that uses what a file
cannot hold, functions and choices that are objects, can be looked at without these, with texts in
place of the objects; to go on with it takes the program.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def readable(state: Any) -> tuple[Any, list[str]]:
    """A state that can be read without the program, and what it then lacks.

    What is no state at all is left to those who read it.
    """
    try:
        return _readable(state)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        return state, []


def _readable(state: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    space = dict(state["space"])
    lacks = ["a cost function"] if state["cost_function"] is True else []
    constraints = [c for c in space["constraints"] if "function" not in c]
    if len(constraints) < len(space["constraints"]):
        lacks.append("a constraint that is a function")
    objects = {name: p["objects"] for name, p in space["parameters"].items() if "objects" in p}
    if objects:
        lacks.append("choices that are objects")
    # Different objects may have one text.
    texts = {
        name: [text if some.count(text) == 1 else f"{text} ({i})" for i, text in enumerate(some)]
        for name, some in objects.items()
    }

    def named(config: dict[str, Any]) -> dict[str, Any]:
        return {k: texts[k][place] if k in texts else place for k, place in config.items()}

    space["constraints"] = constraints
    space["parameters"] = {
        name: {"type": p["type"], "choices": texts[name]} if name in texts else p
        for name, p in space["parameters"].items()
    }
    if "conditions" in space:
        space["conditions"] = {
            name: {**c, "values": [named({c["parent"]: v})[c["parent"]] for v in c["values"]]}
            for name, c in space["conditions"].items()
        }
    if space["pool"] is not None:
        space["pool"] = [named(config) for config in space["pool"]]
    trials = [{**trial, "config": named(trial["config"])} for trial in state["trials"]]
    queue = [named(config) for config in state["queue"]]
    return {**state, "space": space, "trials": trials, "queue": queue}, lacks
