"""Reading results, and packing them: a row for each problem, method, seed and iteration.

A cell is a problem with a seed, where all methods start from the same points. A rank depends on who
else takes part, regret on the task: they are averaged over the cells where all methods were run.
"""

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amortes.bench.protocol import SECONDS
from amortes.bench.report.names import metric_of, order_methods, order_problems, panel_of
from amortes.errors import FileError
from amortes.files import AnyPath, atomic_path, read_json

RUN = ["problem", "method", "seed"]
CELL = ["problem", "seed"]
TEXT = ("threads", "version", "commit", "weights")
VALUES = ("value", "regret", "simple_value", "simple_regret")
NEEDED: dict[str, type] = {"problem": str, "d": int, "method": str, "seed": int, "iteration": int}
NEEDED |= dict.fromkeys(VALUES[:2], float)
OPTIONAL: dict[str, type] = {"noise_sd": float, **dict.fromkeys(SECONDS, float)}
OPTIONAL |= dict.fromkeys(TEXT, str) | dict.fromkeys(VALUES[2:], float)
TYPES = NEEDED | OPTIONAL
"""Columns of a file of results that reports use."""
SHARE = 0.5
"""A method takes part if it was run in at least this share of the cells of the best-covered one."""
FLOOR = 1e-10
"""Regrets below count as this: the best values of the problems are not known better."""


@dataclass(frozen=True, eq=False)
class Results:
    """All runs of a sweep, or of several."""

    rows: pd.DataFrame
    """As `arrange` makes them."""
    environments: Sequence[Any] = ()
    """What each sweep says about its machine."""
    failures: Sequence[str] = ()
    """Runs that failed, each with the last line of its traceback."""
    notes: Sequence[str] = ()
    """What was odd about the files."""

    @cached_property
    def problems(self) -> list[str]:
        """In the order of the report."""
        return order_problems(self.rows["problem"])

    @cached_property
    def methods(self) -> list[str]:
        """In the order of the report."""
        return order_methods(self.rows["method"])

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The last row of every run, by problem, method and seed."""
        return self.rows.groupby(RUN).tail(1).sort_values(RUN, key=in_order)

    @cached_property
    def weights(self) -> dict[str, list[str]]:
        """Digests of the weights of a method; empty strings where they were not recorded."""
        digests = self.rows.groupby("method")["weights"].unique()
        found = {method: sorted(digests[method]) for method in self.methods}
        return {method: digests for method, digests in found.items() if digests != [""]}


def in_order(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A key to sort rows by: problems and methods as in the report, all else as it is."""
    order = {"problem": order_problems, "method": order_methods}.get(str(column.name))
    return column if order is None else column.map({x: i for i, x in enumerate(order(column))})


def arrange(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by problem, method, iteration and seed, and add what follows from them.

    panel    what they are averaged in
    score    higher is better: the value, or minus the regret if a run has no values
    metric   what curves show: log10 of the floored regret, or the value
    """
    rows = rows.sort_values(["problem", "method", "iteration", "seed"], key=in_order)
    rows = rows.assign(**{name: np.nan for name in OPTIONAL if name not in rows})
    rows[[*TEXT]] = rows[[*TEXT]].astype(object).fillna("")
    valued = rows.groupby(RUN)["value"].transform("count") > 0
    by_regret = rows["problem"].map(metric_of) == "regret"
    log_regret = np.log10(rows["regret"].clip(lower=FLOOR))
    return rows.assign(
        panel=rows["problem"].map(panel_of),
        score=rows["value"].where(valued, -rows["regret"]),
        metric=log_regret.where(by_regret, rows["value"]),
    ).reset_index(drop=True)


def common_rows(results: Results, problems: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of the cells where all methods were run, and the methods run in too few of them."""
    runs = results.runs[results.runs["problem"].isin(problems)]
    there = runs.set_index(RUN)["iteration"].unstack("method").notna()
    count = there.sum().reindex(order_methods(there.columns))
    chosen = [method for method in count.index if count[method] >= SHARE * count.max()]
    while chosen and not there[chosen].all(axis=1).any():
        chosen.remove(min(chosen, key=lambda method: count[method]))
    cells = there.index[there[chosen].all(axis=1)]
    inside = pd.MultiIndex.from_frame(results.rows[CELL]).isin(cells)
    rows = results.rows[inside & results.rows["method"].isin(chosen)]
    return rows, [method for method in count.index if method not in chosen]


def load_results(*sources: Path) -> Results:
    """Read folders of sweeps, their results.csv or packed files; environment.json if there is one.

    Of a run that several of them have, that of the last one counts, as a whole. Of a folder, the
    runs that are finished are read, which results.csv has only once the sweep is.
    """
    rows, replaced = combined(sources)
    known = rows[["value", "regret"]].notna().any(axis=1)
    rows = rows[known]
    repeated = rows.duplicated([*RUN, "iteration"], keep="last")
    odd = {
        "Rows without value and regret, which are left out": (~known).sum(),
        "Rows that repeat an iteration of a run, of which the last counts": repeated.sum(),
        "Runs replaced by those of a later sweep with the same problem, method and seed": replaced,
    }
    folders = dict.fromkeys(_table(source).parent.resolve() for source in sources)
    described = [folder / "environment.json" for folder in folders]
    failed = [path for folder in folders for path in sorted(folder.glob("failures/*.txt"))]
    return Results(
        arrange(rows[~repeated]),
        environments=[read_json(path) for path in described if path.is_file()],
        failures=[_failure(path) for path in failed],
        notes=[f"{what}: {count}." for what, count in odd.items() if count],
    )


def combined(sources: Sequence[Path]) -> tuple[pd.DataFrame, int]:
    """The rows of several sweeps; of a run that several have, those of the last; how many had."""
    rows, replaced = pd.DataFrame(), 0
    for source in sources:
        files = sorted(source.glob("runs/*.csv")) or [_table(source)]
        here = pd.concat([_read(path) for path in files], ignore_index=True)
        if len(rows):
            again = pd.MultiIndex.from_frame(rows[RUN]).isin(pd.MultiIndex.from_frame(here[RUN]))
            replaced += len(rows.loc[again, RUN].drop_duplicates())
            here = pd.concat([rows[~again], here], ignore_index=True)
        rows = here
    return rows, replaced


def pack(sources: Sequence[Path], target: AnyPath) -> int:
    """Write what the sweeps in `sources` have to one small file; returns the number of runs.

    A compressed CSV file without the points (`x`, `y`, `recommended`), with six digits of values
    and three of times, from which reports can be made as from the sweeps. The same results give the
    same file.
    """
    rows, _ = combined(sources)
    rows = rows.sort_values(RUN, kind="stable").reindex(columns=[*TYPES])
    for name in (*VALUES, *SECONDS):
        form = "{:.3g}" if name in SECONDS else "{:.6g}"
        rows[name] = rows[name].map(form.format, na_action="ignore")
    text = rows.to_csv(index=False, lineterminator="\n")
    with atomic_path(target) as temporary:
        # Without a time or name in its header, which would make each file another one.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(rows[RUN].drop_duplicates())


def _read(path: Path) -> pd.DataFrame:
    """The rows of a file of results, compressed or not; NaN where it has no number."""
    empty = {name: [""] for name, kind in TYPES.items() if kind is not str}
    try:
        rows = pd.read_csv(path, dtype=dict(TYPES), keep_default_na=False, na_values=empty)
    except FileNotFoundError as error:
        raise FileError(
            f"{path} does not exist. Give the folder that `amortes bench run` wrote, or its "
            "results.csv."
        ) from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise FileError(
            f"{path} is damaged: {error}. Delete the line, or run again what wrote it."
        ) from error
    if missing := [name for name in NEEDED if name not in rows]:
        raise FileError(
            f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(map(str, rows))}. "
            "Is it a results file of `amortes bench run`?"
        )
    if rows[["value", "regret"]].isna().all(axis=None):
        raise FileError(f"{path} has no results: no row has a value or a regret.")
    return rows[[name for name in TYPES if name in rows]]


def _table(source: Path) -> Path:
    return source / "results.csv" if source.is_dir() else source


def _failure(path: Path) -> str:
    """The run and the last line of its traceback."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[0]}: {lines[-1]}" if lines else path.stem
