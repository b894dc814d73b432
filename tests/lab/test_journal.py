import itertools
import json
from typing import Any

from amortes.lab import journal


def state(*values: float | None) -> dict[str, Any]:
    trials = [{"number": i, "value": value} for i, value in enumerate(values)]
    return {"goal": "minimize", "queue": [], "trials": trials}


def content(some: dict[str, Any]) -> bytes:
    return json.dumps(some).encode()


def test_a_change_is_taken_back_exactly() -> None:
    before, after = {**state(1.0, None), "queue": [{"x": 1}]}, state(1.0, 2.0, None, None)
    undo = journal.entry(before, after, "told", content(after))
    assert undo.changed == [{"number": 1, "value": None}]  # and no more than that
    assert journal.reverted(after, undo) == before


def test_entries_count_only_for_the_file_they_lead_from() -> None:
    states = [state(), state(1.0), state(1.0, 2.0)]
    entries = [
        journal.entry(a, b, str(i), content(b))
        for i, (a, b) in enumerate(itertools.pairwise(states))
    ]
    assert journal.usable(entries, content(states[2])) == entries
    # A kill before the last change was written, or an undo: the one before it is the last.
    assert journal.usable(entries, content(states[1])) == entries[:1]
    assert journal.usable(entries, content(states[0])) == []
    assert journal.usable(entries, content(state(9.0))) == []  # another program's work
