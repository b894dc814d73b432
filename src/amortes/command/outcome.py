"""What a finished command says: a number in its output or in a JSON file, or why there is none."""

import json
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from amortes.errors import ConfigError

STDOUT, STDERR = "stdout.txt", "stderr.txt"
# A number alone, or after a name: "0.31", "f1: 0.31", "val_loss = nan"; but 12:30 is a time.
NAMED_NUMBER = re.compile(r"(?!.*\b\d+:\d)(?:[\w ./()-]*[:=]\s*)?(\S+)")
TAIL = 1 << 16
"""Bytes at the end of an output that are looked at."""
SHOWN = 200
"""Characters of an output that fit a reason."""


@dataclass(frozen=True)
class Answer:
    """A value, or the reason why there is none."""

    value: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ResultFile:
    """Where a command writes its result: a JSON file in the trial's folder, and a key in it."""

    name: str
    keys: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "result.json:loss"; dots go deeper, "result.json:test.loss"."""
        name, _, key = text.rpartition(":")
        if not name or not all(key.split(".")):
            raise ConfigError(f"result: expected FILE:KEY such as result.json:loss, not {text!r}.")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigError(f"result: the file must be in the trial's folder, not {name!r}.")
        return cls(name, tuple(key.split(".")))

    def read(self, folder: Path) -> Answer:
        """The number in the file."""
        try:
            value: Any = json.loads((folder / self.name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Answer(reason=f"it wrote no {self.name} in its folder")
        except (OSError, ValueError, RecursionError) as error:
            return Answer(reason=f"{self.name} is not readable as JSON ({error})")
        for key in self.keys:
            if not isinstance(value, dict) or key not in value:
                return Answer(reason=f"{self.name} has no {'.'.join(self.keys)}")
            value = value[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            short = json.dumps(value)[:SHOWN]
            return Answer(reason=f"{'.'.join(self.keys)} in {self.name} is {short}, not a number")
        try:
            return Answer(float(value))
        except OverflowError:
            return Answer(reason=f"{'.'.join(self.keys)} in {self.name} is too large a number")


def read_answer(folder: Path, code: int, result: ResultFile | None) -> Answer:
    """What the command whose outputs are in `folder` gave, after it ended with exit code `code`."""
    if code != 0:
        ended = f"exit code {code}" if code > 0 else f"killed by {_signal(-code)}"
        line = last_line(folder / STDERR)
        return Answer(reason=f"{ended}: {line}" if line else ended)
    if result is not None:
        return result.read(folder)
    line = last_line(folder / STDOUT)
    if line is None and not (folder / STDOUT).is_file():
        return Answer(reason=f"it removed {STDOUT}, the last line of which should be a number")
    if line is None:
        return Answer(reason="it printed nothing, but its last line should be a number")
    match = NAMED_NUMBER.fullmatch(line)
    try:
        return Answer(float(match[1] if match else line))
    except ValueError:
        return Answer(reason=f"its last line is {line!r}, not a number")


def last_line(path: Path) -> str | None:
    """The last line that is not empty, shortened; None if there is none, or no such file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return None
    # Progress bars go back with \\r: what they show last is a line of its own.
    filled = [line.strip() for line in re.split(r"[\r\n]", text) if line.strip()]
    return filled[-1][-SHOWN:] if filled else None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
