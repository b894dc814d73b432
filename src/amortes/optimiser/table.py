"""Trials as a table: one line per trial, with a column for each parameter.

    trial,status,value,lr,layers,reason
    0,done,0.31,0.001,3,
    1,failed,,0.1,8,exit code 1: out of memory

`read_results` takes such tables back, as a CSV or Parquet file or a DataFrame, and those of other
people, which have a column for each parameter, a column `value`, and perhaps some of the others.
Pandas is imported only where a DataFrame is made or read from a file.
"""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from amortes.errors import DataError, FileError, about, needs_extra, shown
from amortes.optimiser.choices import Choices, identity
from amortes.optimiser.space import Config, Space
from amortes.optimiser.text import in_words
from amortes.optimiser.trials import Trial, outcome

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
Entries = Iterable[Trial | tuple[Mapping[str, Any], float] | Mapping[str, Any]]
"""Results as `Trial` or (config, value), and configs to try first, as pending trials are."""
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
"""A table of results: a CSV or Parquet file, or a DataFrame."""
Start: TypeAlias = "Entries | Table | Callable[[Space], Entries | Table]"
"""What a run may start from: a list, a table, or a function of the space that returns one."""


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
    return _new_frame({**columns, "reason": [trial.reason for trial in trials]})


def _new_frame(columns: Mapping[str, list[Any]]) -> "pd.DataFrame":
    """A DataFrame of columns of equal length; None where something is missing."""
    pandas = _pandas()
    frame: pd.DataFrame = pandas.DataFrame(columns)
    for name, values in columns.items():
        # Whole numbers and truth values with gaps would become floats or objects.
        known = {type(value) for value in values if value is not None}
        if known in ({int}, {bool}) and None in values:
            frame[name] = pandas.array(values)
        elif not known:
            frame[name] = frame[name].astype("float64")  # else no type at all
    return frame


def _pandas() -> Any:
    with needs_extra("pandas", "tables need pandas"):
        import pandas
    return pandas


def _kind(parameter: Choices) -> type | None:
    """What all choices are: str, bool or numbers; None if they are not alike."""
    kinds = {type(choice) for choice in parameter.choices}
    if kinds <= {int, float}:
        return float
    return kinds.pop() if kinds in ({str}, {bool}) else None


def optional(trials: Sequence[Trial]) -> list[str]:
    """Those of the optional columns that any trial has."""
    return [name for name in OPTIONAL if any(getattr(trial, name) is not None for trial in trials)]


def entries(start: Start, space: Space) -> Iterable[Any]:
    """One entry after the other, of a list, a table, or what a function of the space returns."""
    given: Any = start(space) if callable(start) else start
    if isinstance(given, str | os.PathLike) or _is_frame(given):
        return read_results(given, space)
    # An array without dimensions claims to be iterable.
    listed = isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
    if isinstance(given, bytes | Mapping) or not listed:
        raise DataError(
            f"start: expected a list of (config, value) pairs, trials or configs, a DataFrame, or "
            f"a file of results, not {shown(given)}."
        )
    results: Iterable[Any] = given
    return results


def _is_frame(value: object) -> bool:
    """Whether it is a DataFrame, without importing pandas: who has one has imported it."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_missing(value: object) -> bool:
    """Whether a cell is empty: no text, None, NaN or pandas's NA."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    pandas: Any = sys.modules.get("pandas")
    return value is pandas.NA if pandas is not None and not isinstance(value, str) else value == ""


def read_results(source: Table, space: Space) -> list[Trial]:
    """The results in a table, for `Optimizer(start=...)`; an error names the row that is wrong.

    Trials under way (unless they have a value) or taken back are left out.
    """
    wrong: type[FileError] | type[DataError] = FileError
    if not isinstance(source, str | os.PathLike):
        name, wrong = "the DataFrame", DataError
        header, rows = _of_frame(source)
    else:
        name, is_parquet = os.fspath(source), Path(source).suffix.lower() in PARQUET
        header, rows = _of_parquet(name) if is_parquet else _of_csv(Path(source))
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
    reader, results = RowReader(space), list[Trial]()
    for label, row in rows:
        status = "" if is_missing(row.get("status")) else str(row["status"])
        if status in ENDED or (status == "pending" and not is_missing(row["value"])):
            with about(f"{name}, {label}:", wrong):
                results.append(reader.trial(len(results), row))
    return results


def _of_csv(path: Path) -> tuple[Sequence[str], Rows]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # some spreadsheets begin with a mark
    except (OSError, ValueError) as error:  # ValueError: not text, or no path
        raise FileError(f"cannot read {path}: {error}") from None
    reader = csv.DictReader(io.StringIO(text), restval="")
    return reader.fieldnames or (), ((f"line {reader.line_num}", row) for row in reader)


def _of_parquet(path: str) -> tuple[Sequence[str], Rows]:
    try:
        return _of_frame(_pandas().read_parquet(path))
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {error}") from None


def _of_frame(frame: "pd.DataFrame") -> tuple[Sequence[str], Rows]:
    names = [str(column) for column in frame.columns]
    cells = zip(*(frame.iloc[:, i].tolist() for i in range(len(names))), strict=True)
    rows = zip(frame.index.tolist(), cells, strict=True)
    return names, ((f"row {label}", dict(zip(names, row, strict=True))) for label, row in rows)


def cell(value: Any) -> Any:
    """A value as it is in a table: text and numbers as they are, anything else as JSON or words."""
    if isinstance(value, str | int | float) and not isinstance(value, bool | Enum):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        return str(value) if isinstance(value, Enum) else in_words(value)


def _text(value: Any) -> str:
    return str(cell(value))


class RowReader:
    """Reads results from rows, cells by the names of their columns."""

    def __init__(self, space: Space) -> None:
        self.space = space
        choices = {name: p.choices for name, p in space.free.items() if isinstance(p, Choices)}
        # By value; by text, as we write it; and as pandas does: True, where we write true.
        self._known = {
            name: [{way(c): c for c in reversed(some)} for way in (identity, _text, str)]
            for name, some in choices.items()
        }

    def trial(self, number: int, row: Mapping[str, Any]) -> Trial:
        """The result in a row; a `DataError` if a cell is wrong."""
        given = {name: value for name, value in row.items() if not is_missing(value)}
        config = self._config(row)
        told: dict[str, Any] = {
            name: _number(given[name], name) for name in ("value", *OPTIONAL) if name in given
        }
        failed = given.get("status") == "failed"
        if "value" not in told and not failed and isinstance(row["value"], str):
            raise DataError("the value is missing; write nan if the evaluation failed.")
        told["value"] = None if failed else told.get("value", float("nan"))
        reason = str(given["reason"]) if "reason" in given else None
        told = outcome(**told, failed=failed, reason=reason)
        return Trial(number, self.space.check(config), **told)

    def _config(self, row: Mapping[str, Any]) -> Config:
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
        meant = None if is_missing(given) else given
        ways = [(values, identity(meant)), (texts, _text(meant))]
        if isinstance(given, str):
            ways = [(texts, given), (words, given)]
        return [known[key] for known, key in ways if key in known][:1]


def _number(given: Any, name: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise DataError(f"{name}: {given!r} is not a number.") from None
