import enum
import json
import subprocess
import sys
from pathlib import Path

import pytest

from amortes import Categorical, Float, Optimizer, Space
from amortes.files import locked
from amortes.lab import programs
from amortes.lab.errors import ReadOnlyError
from amortes.lab.study import Study


def test_a_program_that_holds_the_lock_is_noticed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.05)
    file, folder = tmp_path / "run.json", tmp_path / "run"
    folder.mkdir()
    for state, place in ((file, file), (folder / "state.json", folder)):
        assert not programs.in_use(state)
        with locked(place, "`minimize`"):
            assert programs.in_use(state)
            with (
                pytest.raises(ReadOnlyError, match="A program is working"),
                programs.alone_with(state),
            ):
                pass
        assert not programs.in_use(state)
        with programs.alone_with(state):
            assert programs.in_use(state)


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    assert not programs.in_use(tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    state = tmp_path / "run.json"
    code = (
        "import sys, time, pathlib; from amortes.lab.programs import alone_with\n"
        "with alone_with(pathlib.Path(sys.argv[1])):\n"
        "    print('in', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(state)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        assert programs.in_use(state)
        other.stdin.close()
        with programs.alone_with(state):
            pass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_a_run_that_its_file_does_not_hold_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    space = Space(
        {"x": Float(0, 1), "colour": Categorical(list(Colour))},
        constraints=[lambda config: config["x"] < 0.5],
    )
    run = Optimizer(space, cost=lambda config: 2.0)
    run.tell({"x": 0.25, "colour": Colour.BLUE}, 1.0)
    run.ask()
    run.save(path)
    snapshot = Study("run.json", path).read()
    assert snapshot.lacks == [
        "a cost function",
        "a constraint that is a function",
        "choices that are objects",
    ]
    assert [trial.config["x"] for trial in snapshot.trials] == [t.config["x"] for t in run.trials]
    assert "BLUE" in snapshot.trials[0].config["colour"]
    with pytest.raises(ReadOnlyError, match="cost function and a constraint"):
        Study("run.json", path).adopt()


def test_what_a_file_can_hold_stays_as_it_is() -> None:
    state = Optimizer({"x": Float(0, 1)}).state
    state = json.loads(json.dumps(state))
    assert programs.readable(state) == (state, [])


@pytest.mark.parametrize("state", [None, [], "x", {}, {"space": 3}, {"space": {"parameters": []}}])
def test_what_is_no_state_is_left_to_others(state: object) -> None:
    assert programs.readable(state) == (state, [])
