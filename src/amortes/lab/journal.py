"""Undo: what takes a run back to what it was before a change.

A change touches few trials, so an entry keeps those as they were, how many there were, and the
queue. It names the file it leads from by its digest: after a change by another program there is
nothing to undo, and an entry whose change was never written (a kill in between) is passed over.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from amortes.lab.about import Undo

MOST = 100  # changes that can be taken back


def digest(content: bytes) -> str:
    """16 hexadecimal digits of a file's content."""
    return hashlib.sha256(content).hexdigest()[:16]


def entry(before: Mapping[str, Any], after: Mapping[str, Any], label: str, content: bytes) -> Undo:
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
