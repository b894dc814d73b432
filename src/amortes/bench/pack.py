"""Results to keep or to send: one small file, from which reports can be made as from the sweeps.

A compressed CSV file without the points (`x`, `y`, `recommended`), with six digits of values and
three of times. The same results give the same file.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from amortes.bench.report.results import (
    NEEDED,
    NUMBERS,
    OPTIONAL,
    RUN,
    SECONDS,
    as_numbers,
    combined,
    read_text,
)
from amortes.files import AnyPath, atomic_path

COLUMNS = [*NEEDED, *OPTIONAL]
DIGITS = dict.fromkeys(("value", "regret", "simple_value", "simple_regret"), 6) | dict.fromkeys(
    SECONDS, 3
)


def pack(sources: Sequence[Path], target: AnyPath) -> int:
    """Write what the sweeps in `sources` have to `target`; returns the number of runs.

    Of a run that several of them have, that of the last one is kept.
    """
    rows, _ = combined(sources, _shortened)
    rows = rows.assign(number=rows["seed"].astype(int))
    rows = rows.sort_values(["problem", "method", "number"], kind="stable")
    text = rows.reindex(columns=COLUMNS).to_csv(index=False, lineterminator="\n")
    with atomic_path(target) as temporary:
        # Without a time or name in its header, which would make each file another one.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(rows[RUN].drop_duplicates())


def _shortened(path: Path) -> pd.DataFrame:
    """The rows of a file as text, with fewer digits."""
    rows = read_text(path)
    as_numbers(path, rows, [name for name in NUMBERS if name in rows])
    short = {
        name: rows[name].map(lambda text, n=n: f"{float(text):.{n}g}" if text else "")
        for name, n in DIGITS.items()
        if name in rows
    }
    return rows.assign(**short)
