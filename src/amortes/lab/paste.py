"""Results pasted from a spreadsheet, or in a CSV file of any habit.

The first line names the columns: one for each parameter, and one for the result. Columns are found
by name, whatever the capitals and units, "Temperature (°C)" for temperature; others are ignored.
Cells are separated by tabs, semicolons or commas; unless by commas, 0,5 is a number too.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence

from amortes.errors import DataError
from amortes.lab.errors import FormError, Problem
from amortes.lab.schemas import MOST_ROWS
from amortes.optimiser import Space, Trial
from amortes.optimiser.choices import Choices
from amortes.optimiser.table import RowReader

WORDS = {
    "value": ("value", "result", "y", "objective", "response"),
    "status": ("status",),
    "cost": ("cost",),
    "violation": ("violation",),
    "reason": ("reason", "note", "notes", "comment"),
}
"""What the columns of a result may be called."""
FAILED = ("failed", "fail", "nan", "n/a", "na", "-", "none", "null")
"""What stands in place of a number if there was none."""
SHOWN = 10  # mistakes that are told at once


def read_table(text: str, space: Space, value: str = "") -> list[Trial]:
    """The results in a table, or a `FormError` that names the lines; `value` is the result's name.

    Lines without anything, and trials under way or taken back, are left out.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines[0] = lines[0].removeprefix("\ufeff")
    header = next((line for line in lines if line.strip()), "")
    separator = next((mark for mark in ("\t", ";", ",") if mark in header), ",")
    table = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
    try:
        rows = [(table.line_num, row) for row in table if any(map(str.strip, row))]
    except csv.Error as error:
        raise _wrong(f"Line {table.line_num}: {error}.") from None
    if len(rows) < 2:
        raise _wrong("The first line must name the columns, and results must follow below it.")
    if len(rows) - 1 > MOST_ROWS:
        raise _wrong(
            f"There are {len(rows) - 1} results; at most {MOST_ROWS} can be added at once."
        )
    columns = _columns(rows[0][1], space, value)
    reader, trials, problems = RowReader(space), list[Trial](), list[Problem]()
    for number, row in rows[1:]:
        cells = {name: row[i].strip() if i < len(row) else "" for name, i in columns.items()}
        if cells.get("status", "") in ("pending", "withdrawn"):
            continue
        try:
            trials.append(reader.trial(len(trials), _plain(cells, space, separator)))
        except DataError as error:
            problems.append(Problem("table", f"Line {number}: {error}"))
    if problems:
        more = len(problems) - SHOWN
        rest = [Problem("table", f"And {more} more.")] if more > 0 else []
        raise FormError(problems[:SHOWN] + rest)
    return trials


def _columns(header: Sequence[str], space: Space, value: str) -> dict[str, int]:
    """Where the columns are that matter."""
    exact = {cell.strip(): i for i, cell in reversed(list(enumerate(header)))}
    loose = {_loosely(cell): i for i, cell in reversed(list(enumerate(header)))}
    wanted: dict[str, tuple[str, ...]] = {name: (name,) for name in space.free}
    wanted |= {name: words for name, words in WORDS.items() if name not in space.free}
    wanted["value"] = (*((value,) if value else ()), *WORDS["value"])
    found: dict[str, int] = {}
    for name, words in wanted.items():
        for word in words:
            place = exact.get(word, loose.get(_loosely(word)))
            if place is not None and place not in found.values():
                found[name] = place
                break
    missing = [name for name in space.free if name not in found and name not in space.conditions]
    if "value" not in found:
        missing.append(value or "value")
    if missing:
        names = ", ".join(cell.strip() for cell in header) or "nothing"
        raise _wrong(
            f"No column for {', '.join(missing)}. The first line must name the columns; it has "
            f"{names}."
        )
    return found


def _loosely(name: str) -> str:
    """A column's name without unit, capitals, spaces and signs."""
    plain = re.sub(r"[(\[].*?[)\]]", "", name)
    return re.sub(r"[\W_]+", "", plain).lower()


def _plain(cells: Mapping[str, str], space: Space, separator: str) -> dict[str, str]:
    """The cells as `RowReader` takes them: numbers with a point, a status for failures."""
    plain = dict(cells)
    if plain["value"].lower() in FAILED or plain.get("status", "").lower() in FAILED:
        plain["status"], plain["value"] = "failed", ""
    else:
        plain["status"] = ""
    for name, text in plain.items() if separator != "," else ():
        words = name in ("status", "reason") or isinstance(space.free.get(name), Choices)
        if not words and re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", text):
            plain[name] = text.replace(",", ".")
    return plain


def _wrong(message: str) -> FormError:
    return FormError([Problem("table", message)])
