import subprocess
import sys
from pathlib import Path

import pytest

from amortes.files import locked
from amortes.lab import locks
from amortes.lab.errors import ReadOnlyError


def test_a_program_that_holds_the_lock_is_noticed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    file, folder = tmp_path / "run.json", tmp_path / "run"
    folder.mkdir()
    for state, place in ((file, file), (folder / "state.json", folder)):
        assert not locks.in_use(state)
        with locked(place, "`minimize`"):
            assert locks.in_use(state)
            with (
                pytest.raises(ReadOnlyError, match="A program is working"),
                locks.alone_with(state),
            ):
                pass
        assert not locks.in_use(state)
        with locks.alone_with(state):
            assert locks.in_use(state)


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    assert not locks.in_use(tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    state = tmp_path / "run.json"
    code = (
        "import sys, time, pathlib; from amortes.lab.locks import alone_with\n"
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
        assert locks.in_use(state)
        other.stdin.close()
        with locks.alone_with(state):
            pass
