"""One process per trial, in a group of its own, so that all it starts can be stopped with it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from amortes.command import guard
from amortes.command.outcome import STDERR, STDOUT


class Process(subprocess.Popen[bytes]):
    """A running command, in a group of its own; its outputs go to files in `folder`."""

    def __init__(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        """Starts it; an `OSError` if that cannot be."""
        self.folder, self.begun = folder, time.monotonic()
        with (folder / STDOUT).open("wb") as out, (folder / STDERR).open("wb") as err:
            super().__init__(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=os.environ | dict(variables),
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.monotonic() - self.begun

    def send(self, signum: int) -> bool:
        """Send a signal to it and all it started; whether any of them was there."""
        return guard.send(self.pid, signum)


def stop(processes: Iterable[Process]) -> None:
    """Stop processes and everything they started."""
    processes = list(processes)
    left = [process for process in processes if process.send(signal.SIGTERM)]
    deadline = time.monotonic() + guard.GRACE
    try:
        while any(process.poll() is None for process in left) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:  # also when somebody is too impatient for the grace
        for process in left:
            process.send(signal.SIGKILL)
            process.wait()


class Guard:
    """Makes sure that the processes it is told of do not outlive this one, even if it is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for us
        )

    def begin(self, process: Process) -> None:
        """Watch over a process."""
        self._say(f"+{process.pid}\n")

    def end(self, process: Process) -> None:
        """It has ended by itself."""
        self._say(f"-{process.pid}\n")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # somebody has killed the guard; go on without it
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


def fresh_folder(folder: Path) -> Path:
    """The folder, empty: whatever an earlier attempt left there is gone."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder
