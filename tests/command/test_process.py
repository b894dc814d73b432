import signal
import subprocess
import sys
import time
from pathlib import Path

from amortes.command import guard
from amortes.command.outcome import STDERR, STDOUT
from amortes.command.process import Guard, Process, fresh_folder, stop

# Starts a grandchild, says its number, and ignores the first request to stop if told so.
PARENT = """
import signal, subprocess, sys, time
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def begin(folder: Path, *arguments: str) -> tuple[Process, int]:
    process = Process([sys.executable, "-c", PARENT, *arguments], folder, {})
    return process, int(wait_for(lambda: (folder / STDOUT).read_text().strip()))


def wait_for(look: object, seconds: float = 20.0) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():  # type: ignore[operator]
            return str(found)
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has buried yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_outputs_environment_and_exit_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['X']); sys.stderr.write('e'); sys.exit(3)"
    process = Process([sys.executable, "-c", code], tmp_path, {"X": "17"})
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == 3
    assert process.seconds > 0
    assert (tmp_path / STDOUT).read_text() == "17\n"
    assert (tmp_path / STDERR).read_text() == "e"


def test_stopping_takes_everything_along(tmp_path: Path) -> None:
    process, grandchild = begin(tmp_path)
    stop([process])
    assert process.poll() == -signal.SIGTERM
    wait_for(lambda: gone(grandchild))
    stop([process])  # again does nothing


def test_the_stubborn_are_killed(tmp_path: Path, monkeypatch: object) -> None:
    process, grandchild = begin(tmp_path, "stubborn")
    monkeypatch.setattr(guard, "GRACE", 0.2)  # type: ignore[attr-defined]
    stop([process])
    assert process.poll() == -signal.SIGKILL
    wait_for(lambda: gone(grandchild))


def test_the_guard_ends_what_a_killed_run_leaves(tmp_path: Path) -> None:
    left, grandchild = begin(fresh_folder(tmp_path / "a"))
    kept, other = begin(fresh_folder(tmp_path / "b"))
    with Guard() as watching:
        watching.begin(left)
        watching.begin(kept)
        watching.end(kept)
    wait_for(lambda: gone(grandchild))
    assert left.poll() == -signal.SIGTERM
    assert kept.poll() is None
    assert not gone(other)
    stop([kept])


def test_a_guard_that_is_gone_is_no_reason_to_stop(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", ""], tmp_path, {})
    with Guard() as watching:
        watching._process.kill()
        watching._process.wait()
        watching.begin(process)
        watching.end(process)
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == 0  # it ended by itself


def test_the_guard_needs_nothing_but_python() -> None:
    code = f"import runpy, sys; runpy.run_path({guard.__file__!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_fresh_folders_are_empty(tmp_path: Path) -> None:
    folder = tmp_path / "trials" / "3"
    (fresh_folder(folder) / "result.json").write_text("{}")
    assert list(fresh_folder(folder).iterdir()) == []
