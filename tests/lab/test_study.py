import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amortes import Float, Optimizer, files
from amortes.errors import FileError
from amortes.lab import study as module
from amortes.lab.about import about_path
from amortes.lab.errors import ChangedError, ConflictError, NotFoundError, ReadOnlyError
from amortes.lab.study import Study

SPACE = {"x": Float(0, 1)}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "run.json"
    Optimizer(SPACE).save(path)
    study = Study("run.json", path)
    study.adopt()
    return study


def add(study: Study, x: float, expected: str | None = None) -> None:
    with study.change(f"result {x}", expected) as edit:
        edit.optimizer.tell({"x": x}, x)


def test_a_change_is_in_the_file_when_it_is_confirmed(study: Study) -> None:
    first = study.read().version
    add(study, 0.25)
    snapshot = study.read()
    assert snapshot.version != first
    assert snapshot.undo == "result 0.25"
    assert Optimizer.load(study.path).trials == snapshot.trials
    assert (best := snapshot.best) is not None
    assert best.value == 0.25
    with pytest.raises(NotFoundError):
        snapshot.trial(1)


def test_no_update_of_several_threads_is_lost(study: Study) -> None:
    values = [i / 40 for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda x: add(study, x), values))
    told = sorted(trial.value or 0.0 for trial in Optimizer.load(study.path).trials)
    assert told == values


def test_two_labs_of_one_folder_see_each_other(study: Study) -> None:
    other = Study(study.id, study.path)
    old = other.read().version
    add(study, 0.5)
    with pytest.raises(ChangedError):
        add(other, 0.75, expected=old)
    add(other, 0.75, expected=other.read().version)
    assert [trial.value for trial in study.read().trials] == [0.5, 0.75]
    assert study.undo()[1] == "result 0.75"


def test_what_fails_changes_nothing(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    add(study, 0.5)
    before = study.path.read_bytes(), study.read()

    def half() -> None:
        with study.change("half") as edit:
            edit.optimizer.tell({"x": 0.1}, 1.0)
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        half()
    full = OSError(28, "No space left on device")
    write = files.write_text

    def no_space(path: Path, text: str) -> None:
        if path == study.path:
            raise full
        write(path, text)

    monkeypatch.setattr(module, "write_text", no_space)
    with pytest.raises(OSError, match="No space left"):
        add(study, 0.75)
    monkeypatch.undo()
    assert study.path.read_bytes() == before[0]
    # The note of the change that never was is passed over.
    assert study.read().trials == before[1].trials
    assert study.undo()[1] == "result 0.5"
    with pytest.raises(ConflictError):
        study.undo()


def test_readers_do_not_wait_for_a_change(study: Study) -> None:
    before = study.read()
    started, go = threading.Event(), threading.Event()

    def slow() -> str:
        with study.change("slow") as edit:
            started.set()
            assert go.wait(30)
            edit.optimizer.tell({"x": 0.5}, 1.0)
        return edit.snapshot.version

    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(slow)
        assert started.wait(30)
        assert study.read() == before
        assert not study.in_use  # by a program
        go.set()
        assert change.result() != before.version


def test_a_program_s_changes_are_seen_and_cannot_be_undone(study: Study) -> None:
    add(study, 0.5)
    run = Optimizer.load(study.path)
    run.tell({"x": 0.75}, 3.0)
    run.save(study.path)
    snapshot = study.read()
    assert len(snapshot.trials) == 2
    assert snapshot.undo is None


def test_runs_of_programs_are_not_changed_until_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "run" / "state.json"
    Optimizer(SPACE).save(path)
    study = Study("run", path)
    assert study.read().about.name == "run"
    for change in (lambda: add(study, 0.5), study.undo, lambda: study.describe(name="mine")):
        with pytest.raises(ReadOnlyError, match="belongs to a program"):
            change()
    assert not about_path(path).exists()
    study.adopt()
    study.describe(name="mine")
    assert study.read().about.name == "mine"


def test_answers_are_kept_until_the_study_changes(study: Study) -> None:
    asked: list[int] = []

    def question(optimizer: Optimizer, snapshot: object) -> int:
        asked.append(len(optimizer.trials))
        return asked[-1]

    assert [study.ask_model("key", question) for _ in range(3)] == [0, 0, 0]
    add(study, 0.5)
    assert study.ask_model("key", question) == 1
    assert asked == [0, 1]
    assert study.ask_model(None, lambda optimizer, snapshot: "one") == "one"
    assert study.ask_model(None, lambda optimizer, snapshot: "two") == "two"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "amortes-optimizer"}', "\xff"])
def test_damage_names_the_file(study: Study, text: str) -> None:
    study.path.write_text(text, encoding="latin-1")
    with pytest.raises(FileError, match=r"run\.json"):
        study.read()


def test_a_damaged_trial_names_the_file(study: Study) -> None:
    add(study, 0.5)
    state = json.loads(study.path.read_text())
    state["trials"][0]["value"] = "high"
    study.path.write_text(json.dumps(state))
    with pytest.raises(FileError, match=r"run\.json"):
        study.read()
