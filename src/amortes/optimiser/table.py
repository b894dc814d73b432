"""Trials as a table: one line per trial, with a column for each parameter.

    trial,status,value,lr,layers,reason
    0,done,0.31,0.001,3,
    1,failed,,0.1,8,exit code 1: out of memory

`read_results` takes such tables back, as a CSV or Parquet file or a DataFrame, and those of other
people, which have a column for each parameter, a column `value`, and perhaps some of the others.
"""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amortes.errors import DataError, FileError
from amortes.optimiser.choices import Choices, identity
from amortes.optimiser.frame import is_frame, is_missing, new_frame, read_parquet, records
from amortes.optimiser.parameter import text as words
from amortes.optimiser.space import Config, Space
from amortes.optimiser.trials import Outcome, Trial

if TYPE_CHECKING:
    import pandas as pd

OPTIONAL = ("cost", "violation")
"""Columns that are there if any trial has such a number."""
OUTCOME = ("status", "value", *OPTIONAL, "reason")
"""Columns that say what came of a trial."""
ENDED = ("", "done", "failed")
"""What the status of a result may be; trials under way or taken back are none."""
PARQUET = (".parquet", ".pq")
Rows = Iterator[tuple[str, Mapping[str, Any]]]
"""Rows, and what to call them in messages."""


def as_csv(trials: Sequence[Trial]) -> str:
    """A header and one line per trial; values that are no text or number as JSON."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    known = optional(trials)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "status", "value", *known, *names, "reason"])
    for trial in trials:
        numbers = [getattr(trial, name) for name in ("value", *known)]
        texts = ["" if number is None else repr(number) for number in numbers]
        cells = [cell(trial.config[name]) if name in trial.config else "" for name in names]
        writer.writerow([trial.number, trial.status, *texts, *cells, trial.reason or ""])
    return out.getvalue()


def to_frame(trials: Sequence[Trial], space: Space) -> "pd.DataFrame":
    """The same as a DataFrame, that CSV and Parquet can hold.

    A column has the type of its parameter. Choices that are not all text, all numbers or all truth
    values are texts, as in the CSV.
    """
    if taken := [name for name in ("trial", *OUTCOME) if name in space.parameters]:
        raise DataError(
            f"a parameter named {', '.join(taken)} clashes with a column of the table; give it "
            f"another name."
        )
    columns: dict[str, list[Any]] = {"trial": [trial.number for trial in trials]}
    for field in ("status", "value", *optional(trials)):
        columns[field] = [getattr(trial, field) for trial in trials]
    for name, parameter in space.parameters.items():
        values = [trial.config.get(name) for trial in trials]
        if isinstance(parameter, Choices) and _kind(parameter) is None:
            values = [_text(t.config[name]) if name in t.config else None for t in trials]
        columns[name] = values
    return new_frame({**columns, "reason": [trial.reason for trial in trials]})


def _kind(parameter: Choices) -> type | None:
    """What all choices are: str, bool or numbers; None if they are not alike."""
    kinds = {type(choice) for choice in parameter.choices}
    if kinds <= {int, float}:
        return float
    return kinds.pop() if kinds in ({str}, {bool}) else None


def optional(trials: Sequence[Trial]) -> list[str]:
    """Those of the optional columns that any trial has."""
    return [name for name in OPTIONAL if any(getattr(trial, name) is not None for trial in trials)]


def is_table(source: object) -> bool:
    """Whether it is something `read_results` takes: a path or a DataFrame."""
    return isinstance(source, str | os.PathLike) or is_frame(source)


def read_results(source: "str | os.PathLike[str] | pd.DataFrame", space: Space) -> list[Trial]:
    """The results in a table, for `Optimizer(start=...)`; an error names the row that is wrong.

    Trials under way (unless they have a value) or taken back are left out.
    """
    wrong: type[FileError] | type[DataError]
    if isinstance(source, str | os.PathLike):
        name, wrong = os.fspath(source), FileError
        is_parquet = Path(source).suffix.lower() in PARQUET
        header, rows = _of_frame(read_parquet(name)) if is_parquet else _of_csv(Path(source))
    else:
        name, wrong = "the DataFrame", DataError
        header, rows = _of_frame(source)
    if taken := [n for n in OUTCOME if n in space.free]:
        raise wrong(
            f"{name}: a parameter named {', '.join(taken)} clashes with a column of results; give "
            f"it another name in the space and in the table."
        )
    needed = [name for name in space.free if name not in space.conditions]
    if missing := [n for n in ("value", *needed) if n not in header]:
        raise wrong(
            f"{name} has no column {', '.join(missing)}. A table needs a column for each parameter "
            f"and one named value."
        )
    reader, results = _Reader(space), list[Trial]()
    for label, row in rows:
        given = {n: value for n, value in row.items() if not is_missing(value)}
        status = str(given.get("status", ""))
        if status not in ENDED and not (status == "pending" and "value" in given):
            continue
        try:
            results.append(_result(len(results), given, row, reader))
        except DataError as error:
            raise wrong(f"{name}, {label}: {error}") from None
    return results


def as_result(number: int, row: Mapping[str, str], space: Space) -> Trial:
    """One row, cells by the names of their columns, as a trial; a `DataError` if one is wrong."""
    given = {name: value for name, value in row.items() if not is_missing(value)}
    return _result(number, given, row, _Reader(space))


def _of_csv(path: Path) -> tuple[Sequence[str], Rows]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # some spreadsheets begin with a mark
    except (OSError, ValueError) as error:  # ValueError: not text, or no path
        raise FileError(f"cannot read {path}: {error}") from None
    reader = csv.DictReader(io.StringIO(text), restval="")
    return reader.fieldnames or (), ((f"line {reader.line_num}", row) for row in reader)


def _of_frame(frame: "pd.DataFrame") -> tuple[Sequence[str], Rows]:
    columns = [str(column) for column in frame.columns]
    return columns, ((f"row {label}", row) for label, row in records(frame))


def cell(value: Any) -> Any:
    """A value as it is in a table: text and numbers as they are, anything else as JSON or words."""
    if isinstance(value, str | int | float) and not isinstance(value, bool | Enum):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        return str(value) if isinstance(value, Enum) else words(value)


def _text(value: Any) -> str:
    return str(cell(value))


class _Reader:
    """Reads configs of a space from the cells of a row."""

    def __init__(self, space: Space) -> None:
        self.space = space
        choices = {name: p.choices for name, p in space.free.items() if isinstance(p, Choices)}
        # By value; by text, as we write it; and as pandas does: True, where we write true.
        self._known = {
            name: [{way(c): c for c in reversed(some)} for way in (identity, _text, str)]
            for name, some in choices.items()
        }

    def config(self, row: Mapping[str, Any]) -> Config:
        """The values of the parameters; the space says if one is missing or is none."""
        config = {}
        for name in self.space.free:
            given = row.get(name)
            if name in self._known:
                found = self._choice(name, given)
                if found or not is_missing(given):
                    config[name] = found[0] if found else given
            elif not is_missing(given):
                config[name] = _number(given, name)
        return self.space.relevant(config)  # an empty cell is no None where there is no value

    def _choice(self, name: str, given: Any) -> list[Any]:
        """The choice that a cell stands for, or none."""
        values, texts, words = self._known[name]
        if not isinstance(given, str):
            meant = None if is_missing(given) else given
            ways = [(values, identity(meant)), (texts, _text(meant))]
        else:
            ways = [(texts, given), (words, given)]
        return [known[key] for known, key in ways if key in known][:1]


def _result(
    number: int, given: Mapping[str, Any], row: Mapping[str, Any], reader: _Reader
) -> Trial:
    config = reader.config(row)
    numbers = {name: _number(given[name], name) for name in ("value", *OPTIONAL) if name in given}
    failed = given.get("status") == "failed"
    if "value" not in numbers and not failed:
        if isinstance(row["value"], str):
            raise DataError("the value is missing; write nan if the evaluation failed.")
        numbers["value"] = float("nan")
    outcome = Outcome.of(
        None if failed else numbers["value"],
        numbers.get("cost"),
        failed,
        str(given["reason"]) if "reason" in given else None,
        numbers.get("violation"),
    )
    return Trial(number, reader.space.check(config), **vars(outcome))


def _number(given: Any, name: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise DataError(f"{name}: {given!r} is not a number.") from None
