"""What a finished command says: a number in its output or in a JSON file, or why there is none.

Besides its value a trial may have a cost and a violation: see `amortes.optimiser.Optimizer.tell`.
"""

import dataclasses
import json
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from amortes.acquisition.units import LARGEST
from amortes.errors import ConfigError
from amortes.optimiser.limits import warn

STDOUT, STDERR = "stdout.txt", "stderr.txt"
# A number alone, or after a name: "0.31", "f1: 0.31", "val_loss = nan", "loss 0.31"; but 12:30 is a
# time, and several words before a number ("epoch 3 of 10") are prose.
NAMED_NUMBER = re.compile(r"(?!.*\b\d+:\d)(?:[\w ./()-]*[:=]\s*|[^\W\d][\w./()-]*\s+)?(\S+)")
TAIL = 1 << 16  # bytes at the end of an output that are looked at
SHOWN = 200  # characters of an output that fit a reason


@dataclass(frozen=True)
class Answer:
    """A value, or the reason why there is none; and what else is known of the trial."""

    value: float | None = None
    reason: str | None = None
    cost: float | None = None
    violation: float | None = None


@dataclass(frozen=True)
class ResultFile:
    """Where a command writes its result: a JSON file in the trial's folder, and a key in it."""

    name: str
    keys: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, what: str = "result") -> Self:
        """From "result.json:loss"; dots go deeper, "result.json:test.loss"."""
        name, _, key = text.rpartition(":")
        if not name or not all(key.split(".")):
            raise ConfigError(f"{what}: expected FILE:KEY such as result.json:loss, not {text!r}.")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigError(f"{what}: the file must be in the trial folder, not {name!r}.")
        return cls(name, tuple(key.split(".")))

    def read(self, folder: Path) -> Answer:
        """The number in the file."""
        try:
            value: Any = json.loads((folder / self.name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Answer(reason=f"it wrote no {self.name} to its trial folder")
        except (OSError, ValueError, RecursionError) as error:
            return Answer(reason=f"{self.name} is not valid JSON ({error})")
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


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where the numbers of a trial are."""

    value: ResultFile | None = None  # without, the last line of the output
    cost: ResultFile | Literal["seconds"] | None = None
    violation: ResultFile | None = None

    @classmethod
    def parse(cls, value: str | None, cost: str | None, violation: str | None) -> Self:
        """From FILE:KEY each, or "seconds" for a cost."""

        def file(name: str, text: str | None) -> ResultFile | None:
            return None if text is None else ResultFile.parse(text, name)

        return cls(
            value=file("result", value),
            cost="seconds" if cost == "seconds" else file("cost", cost),
            violation=file("violation", violation),
        )

    def read(self, folder: Path, code: int, seconds: float) -> Answer:
        """What the command with outputs in `folder` gave; it ended with `code` after `seconds`."""
        answer = read_value(folder, code, self.value)
        if self.violation is not None:
            found = self.violation.read(folder)
            if found.value is not None and abs(found.value) <= LARGEST:
                answer = dataclasses.replace(answer, violation=found.value)
            elif answer.value is not None:
                # Nobody knows whether this value is allowed.
                answer = Answer(reason=found.reason or f"its violation is {found.value:g}")
        return dataclasses.replace(answer, cost=self._cost(folder, seconds, answer))

    def _cost(self, folder: Path, seconds: float, answer: Answer) -> float | None:
        if self.cost is None or self.cost == "seconds":
            return None if self.cost is None else seconds
        found = self.cost.read(folder)
        if found.value is not None and 0 < found.value <= LARGEST:
            return found.value
        if answer.value is not None:  # no reason to lose it
            why = found.reason or f"{found.value:g} is not a positive number"
            warn(f"a trial is used without its cost: {why}.")
        return None


def read_value(folder: Path, code: int, result: ResultFile | None) -> Answer:
    """The value, after the command ended with exit code `code`."""
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
