"""Results to keep or to send: one small file, from which reports can be made as from the sweeps.

A compressed CSV file without the points (`x`, `y`, `recommended`), with six digits of values and
three of times. The same results give the same file.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

from amortes.bench.report.results import RUN, SECONDS, TYPES, combined
from amortes.files import AnyPath, atomic_path

DIGITS = dict.fromkeys(("value", "regret", "simple_value", "simple_regret"), 6) | dict.fromkeys(
    SECONDS, 3
)


def pack(sources: Sequence[Path], target: AnyPath) -> int:
    """Write what the sweeps in `sources` have to `target`; returns the number of runs.

    Of a run that several of them have, that of the last one is kept.
    """
    rows, _ = combined(sources)
    rows = rows.sort_values(RUN, kind="stable").reindex(columns=[*TYPES])
    for name, digits in DIGITS.items():
        rows[name] = rows[name].map(f"{{:.{digits}g}}".format, na_action="ignore")
    text = rows.to_csv(index=False, lineterminator="\n")
    with atomic_path(target) as temporary:
        # Without a time or name in its header, which would make each file another one.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(rows[RUN].drop_duplicates())
