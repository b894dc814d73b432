"""Results to keep or to send: one small file, from which reports can be made as from the sweeps.

A compressed CSV file without the points (`x`, `y`, `recommended`), with six digits of values and
three of times. The same results give the same file.
"""

import csv
import gzip
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from amortes.bench.report.results import (
    NEEDED,
    OPTIONAL,
    SECONDS,
    check_columns,
    open_table,
    tables,
)
from amortes.errors import FileError
from amortes.files import atomic_path

COLUMNS = (*NEEDED, *OPTIONAL)
DIGITS = dict.fromkeys(("value", "regret", "simple_value", "simple_regret"), 6) | dict.fromkeys(
    SECONDS, 3
)


def pack(sources: Sequence[Path], target: str | os.PathLike[str]) -> int:
    """Write what the sweeps in `sources` have to `target`; returns the number of runs.

    Of a run that several of them have, that of the last one is kept.
    """
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for source in sources:
        here: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for path in tables(source):
            for row in _rows(path):
                here.setdefault((row["problem"], row["method"], row["seed"]), []).append(row)
        found |= here
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for key in sorted(found, key=lambda k: (*k[:2], int(k[2]))):
        writer.writerows(found[key])
    with atomic_path(target) as temporary:
        # Without a time or name in its header, which would make each file another one.
        temporary.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return len(found)


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with open_table(path) as file:
        reader = csv.DictReader(file)
        check_columns(path, reader.fieldnames or ())
        empty = True
        for row in reader:
            empty = False
            try:
                yield {name: _short(name, row.get(name) or "") for name in COLUMNS}
            except ValueError as error:
                raise FileError(f"{path} has a line that is no result: {error}.") from error
        if empty:
            raise FileError(f"{path} has no results: there is nothing below its header.")


def _short(name: str, text: str) -> str:
    return f"{float(text):.{DIGITS[name]}g}" if text and name in DIGITS else text
