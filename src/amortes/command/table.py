"""Trials as a table, `trials.csv`: one line per trial, with a column for each parameter.

    trial,status,value,lr,layers,reason
    0,done,0.31,0.001,3,
    1,failed,,0.1,8,exit code 1: out of memory

`read_results` also takes tables of other people, which have a column for each parameter, a column
`value`, and perhaps some of the others.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amortes.errors import DataError, FileError
from amortes.optimiser.choices import Choices
from amortes.optimiser.parameter import Parameter
from amortes.optimiser.space import Space
from amortes.optimiser.trials import Outcome, Trial

OPTIONAL = ("cost", "violation")
"""Columns that are there if any trial has such a number."""
ENDED = ("", "done", "failed")
"""What the status of a result may be; trials under way or taken back are none."""


def as_csv(trials: Sequence[Trial]) -> str:
    """A header and one line per trial; values that are no text or number as JSON."""
    out = io.StringIO()
    names = list(trials[0].config) if trials else []
    known = [n for n in OPTIONAL if any(getattr(trial, n) is not None for trial in trials)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "status", "value", *known, *names, "reason"])
    for trial in trials:
        numbers = [getattr(trial, name) for name in ("value", *known)]
        texts = ["" if number is None else repr(number) for number in numbers]
        cells = [_cell(value) for value in trial.config.values()]
        writer.writerow([trial.number, trial.status, *texts, *cells, trial.reason or ""])
    return out.getvalue()


def read_results(path: Path, space: Space) -> list[Trial]:
    """Results in a table, for `Optimizer(start=...)`; an error names the line that is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some spreadsheets begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not readable: {error}") from None
    rows = csv.DictReader(io.StringIO(text), restval="")
    header = rows.fieldnames or ()
    if taken := [n for n in ("status", "value", *OPTIONAL, "reason") if n in space.free]:
        raise FileError(
            f"{path}: a parameter named {', '.join(taken)} cannot be told from the column of a "
            f"result; give it another name in the space and in the table."
        )
    if missing := [name for name in ("value", *space.free) if name not in header]:
        raise FileError(
            f"{path} has no column {', '.join(missing)}: needed are a column for each parameter, "
            f"and value."
        )
    results: list[Trial] = []
    for row in rows:
        if row.get("status", "") not in ENDED:
            continue
        try:
            results.append(_result(len(results), row, space))
        except DataError as error:
            raise FileError(f"{path}, line {rows.line_num}: {error}") from None
    return results


def _result(number: int, row: Mapping[str, str], space: Space) -> Trial:
    config = {name: _value(row[name], name, p) for name, p in space.free.items()}
    given = {name: _number(row[name], name) for name in ("value", *OPTIONAL) if row.get(name)}
    failed = row.get("status") == "failed"
    if "value" not in given and not failed:
        raise DataError("it has no value; write nan if there was none.")
    outcome = Outcome.of(
        None if failed else given["value"],
        given.get("cost"),
        failed,
        row.get("reason") or None,
        given.get("violation"),
    )
    return Trial(number, space.check(config), **vars(outcome))


def _cell(value: Any) -> Any:
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if is_plain else json.dumps(value)


def _value(text: str, name: str, parameter: Parameter) -> Any:
    if not isinstance(parameter, Choices):
        return _number(text, name)
    for choice in parameter.choices:
        if text == str(_cell(choice)):
            return choice
    return text  # which the space refuses with a list of its choices


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{name}: {text!r} is not a number.") from None
