import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from amortes.errors import FileError
from amortes.lab.about import (
    About,
    Prediction,
    about_path,
    read_about,
    reverted,
    undo_entry,
    usable,
)


def test_it_is_kept_beside_the_run() -> None:
    assert about_path(Path("a/state.json")) == Path("a/state.lab.json")
    assert about_path(Path("run.json")) == Path("run.lab.json")


def test_what_is_written_is_read_again() -> None:
    about = About(name="Brot & Salz", units={"t": "°C"}, predictions={3: Prediction(median=1.0)})
    assert read_about(about.model_dump_json().encode(), Path("x")) == about


@pytest.mark.parametrize("text", ["", "[]", '{"name": 3}', '{"name": "a", "format": "other"}'])
def test_damage_is_explained(text: str) -> None:
    with pytest.raises(FileError, match=r"run\.lab\.json is"):
        read_about(text.encode(), Path("run.lab.json"))


def state(*values: float | None) -> dict[str, Any]:
    trials = [{"number": i, "value": value} for i, value in enumerate(values)]
    return {"goal": "minimize", "queue": [], "trials": trials}


def content(some: dict[str, Any]) -> bytes:
    return json.dumps(some).encode()


def test_a_change_is_taken_back_exactly() -> None:
    before, after = {**state(1.0, None), "queue": [{"x": 1}]}, state(1.0, 2.0, None, None)
    undo = undo_entry(before, after, "told", content(after))
    assert undo.changed == [{"number": 1, "value": None}]  # and no more than that
    assert reverted(after, undo) == before


def test_entries_count_only_for_the_file_they_lead_from() -> None:
    states = [state(), state(1.0), state(1.0, 2.0)]
    entries = [
        undo_entry(a, b, str(i), content(b)) for i, (a, b) in enumerate(itertools.pairwise(states))
    ]
    assert usable(entries, content(states[2])) == entries
    # A kill before the last change was written, or an undo: the one before it is the last.
    assert usable(entries, content(states[1])) == entries[:1]
    assert usable(entries, content(states[0])) == []
    assert usable(entries, content(state(9.0))) == []  # another program's work
