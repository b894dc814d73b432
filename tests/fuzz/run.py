"""Runs many inputs one after the other, and finds those that are defects or hang."""

import collections
import contextlib
import signal
import traceback
from collections.abc import Iterator
from typing import Any

from tests.fuzz.targets import run

PATIENCE = 60.0
"""Seconds after which an input counts as hanging; the longest take about one."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """A TimeoutError if the block takes longer; without signals, as on Windows, nothing."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(seed: int, count: int) -> tuple[collections.Counter[str], list[str]]:
    """How often each target took or refused an input, and the tracebacks of defects."""
    counts: collections.Counter[str] = collections.Counter()
    defects = []
    for index in range(count):
        try:
            with patience(PATIENCE):
                counts[run(seed, index)] += 1
        except Exception:
            defects.append(f"input {index} of seed {seed}\n{traceback.format_exc(limit=-6)}")
    return counts, defects
