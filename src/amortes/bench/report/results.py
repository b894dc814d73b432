"""Reading results: a row for each problem, method, seed and iteration."""

import contextlib
import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import pandas as pd

from amortes.bench.report.names import (
    canonical,
    metric_of,
    order_methods,
    order_problems,
    panel_of,
)
from amortes.bench.report.text import counted
from amortes.errors import FileError
from amortes.files import read_json

NEEDED = ("problem", "d", "method", "seed", "iteration", "value", "regret")
SECONDS = ("fit_seconds", "search_seconds", "recommend_seconds")
OPTIONAL = (
    *("noise_sd", *SECONDS, "threads", "version", "commit", "weights"),
    *("simple_value", "simple_regret"),
)
RUN = ["problem", "method", "seed"]
TEXT = ["threads", "version", "commit", "weights"]
WHOLE = ("d", "seed", "iteration")
NUMBERS = (*WHOLE, "value", "regret", "noise_sd", *SECONDS, "simple_value", "simple_regret")
FLOOR = 1e-10
"""Regrets below count as this: the best values of the problems are not known better."""


@dataclass(frozen=True, eq=False)
class Results:
    """All runs of a sweep, or of several."""

    rows: pd.DataFrame
    """As `arrange` makes them."""
    environments: Sequence[Any] = ()
    """What each sweep says about its machine."""
    versions: Sequence[str] = ()
    commits: Sequence[str] = ()
    weights: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Digests of the weights of a method; empty strings where they were not recorded."""
    failures: Sequence[str] = ()
    """Runs that failed, each with the last line of its traceback."""
    notes: Sequence[str] = ()
    """What was odd about the file."""

    @cached_property
    def problems(self) -> list[str]:
        """In the order of the report."""
        return list(dict.fromkeys(self.rows["problem"]))

    @cached_property
    def methods(self) -> list[str]:
        """In the order of the report."""
        return order_methods(self.rows["method"])

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The last row of every run, by problem, method and seed."""
        return (
            self.rows.groupby(RUN, sort=False, as_index=False)
            .tail(1)
            .sort_values(RUN, key=_in_order(self.problems, self.methods))
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """What comparisons go by, higher is better: methods across; problem, seed and n down."""
        return self.rows.pivot(
            index=["problem", "seed", "iteration"], columns="method", values="score"
        )


def arrange(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by problem, method, iteration and seed, and add what follows from them.

    panel    what they are averaged in
    score    higher is better: the value, or minus the regret if a run has no values
    metric   what curves show: log10 of the floored regret, or the value
    """
    order = _in_order(order_problems(rows["problem"]), order_methods(rows["method"]))
    rows = rows.sort_values(["problem", "method", "iteration", "seed"], key=order)
    rows = rows.assign(**{name: np.nan for name in OPTIONAL if name not in rows})
    rows[TEXT] = rows[TEXT].astype(object).fillna("")
    valued = rows.groupby(RUN)["value"].transform("count") > 0
    by_regret = rows["problem"].map(metric_of) == "regret"
    log_regret = np.log10(rows["regret"].clip(lower=FLOOR))
    return rows.assign(
        panel=rows["problem"].map(panel_of),
        score=rows["value"].where(valued, -rows["regret"]),
        metric=log_regret.where(by_regret, rows["value"]),
    ).reset_index(drop=True)


def load_results(*sources: Path) -> Results:
    """Read folders of sweeps, their results.csv or packed files; environment.json if there is one.

    Of a run that several of them have, that of the last one counts, as a whole. Of a folder, the
    runs that are finished are read, which results.csv has only once the sweep is.
    """
    rows, replaced = combined(sources, _read_numbers)
    known = rows[["value", "regret"]].notna().any(axis=1)
    notes = []
    if not known.all():
        notes.append(f"{(~known).sum()} rows have neither value nor regret and are left out.")
    rows = rows[known].assign(problem=rows["problem"].map(canonical))
    distinct = rows.drop_duplicates([*RUN, "iteration"], keep="last")
    if len(distinct) < len(rows):
        repeated = len(rows) - len(distinct)
        notes.append(f"{repeated} rows repeat an iteration of a run; the last one counts.")
    if replaced:
        notes.append(
            f"Replaced by what a later sweep has of the same problem, method and seed: "
            f"{counted(replaced, 'run')}."
        )
    distinct = arrange(distinct)
    digests = {
        method: sorted(set(distinct["weights"][distinct["method"] == method]))
        for method in order_methods(distinct["method"])
    }
    digests = {method: found for method, found in digests.items() if found != [""]}
    for method, found in digests.items():
        if len(found) > 1:
            listed = ", ".join(digest or "not recorded" for digest in found)
            notes.append(f"{method}: its runs were made with different weights ({listed}).")
    folders = dict.fromkeys(_table(source).parent.resolve() for source in sources)
    return Results(
        rows=distinct,
        environments=[
            read_json(path) for folder in folders if (path := folder / "environment.json").is_file()
        ],
        versions=sorted(set(distinct["version"]) - {""}),
        commits=sorted(set(distinct["commit"]) - {""}),
        weights=digests,
        failures=[
            _failure(file)
            for folder in folders
            for file in sorted((folder / "failures").glob("*.txt"))
        ],
        notes=notes,
    )


def combined(
    sources: Sequence[Path], read: Callable[[Path], pd.DataFrame]
) -> tuple[pd.DataFrame, int]:
    """The rows of several sweeps; of a run that several have, those of the last; how many had."""
    rows, replaced = pd.DataFrame(), 0
    for source in sources:
        files = sorted(source.glob("runs/*.csv")) or [_table(source)]
        here = pd.concat([read(path) for path in files], ignore_index=True)
        if len(rows):
            again = pd.MultiIndex.from_frame(rows[RUN]).isin(pd.MultiIndex.from_frame(here[RUN]))
            replaced += len(rows.loc[again, RUN].drop_duplicates())
            here = pd.concat([rows[~again], here], ignore_index=True)
        rows = here
    return rows, replaced


def read_text(path: Path) -> pd.DataFrame:
    """The columns of a file of results that reports use, as text."""
    with _opened(path) as file:
        header = next(csv.reader(file), [])
        if missing := [name for name in NEEDED if name not in header]:
            raise FileError(
                f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(header)}. "
                "Is it a results file of `amortes bench run`?"
            )
        try:
            rows = pd.read_csv(
                file, names=header, dtype=str, keep_default_na=False, skip_blank_lines=False
            )
        except pd.errors.ParserError as error:
            raise FileError(f"{path} is damaged: {error}.") from error
    if rows.empty:
        raise FileError(f"{path} has no results: there is nothing below its header.")
    return rows[[name for name in (*NEEDED, *OPTIONAL) if name in header]]


def as_numbers(path: Path, rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """These columns of text as numbers, NaN where there is none; refuses other words."""
    numbers = {name: pd.to_numeric(rows[name], errors="coerce") for name in columns}
    for name, values in numbers.items():
        wrong = values.isna() & ((rows[name] != "") | (name in WHOLE))
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise FileError(
                f"{path}, line {place + 2}: {name} is no number: {rows[name].iloc[place]!r}. "
                "Delete the line, or run again what wrote it."
            )
    return rows.assign(**numbers)


def _read_numbers(path: Path) -> pd.DataFrame:
    rows = read_text(path)
    rows = as_numbers(path, rows, [name for name in NUMBERS if name in rows])
    if rows[["value", "regret"]].isna().all(axis=None):
        raise FileError(f"{path} has no results: no row has a value or a regret.")
    return rows


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A file of results, compressed or not, to read."""
    if not path.is_file():
        raise FileError(
            f"{path} does not exist. Give the folder that `amortes bench run` wrote, or its "
            "results.csv."
        )
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", newline="", encoding="utf-8") as file:
            yield cast(TextIO, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(f"{path} is damaged: {error}.") from error


def _table(source: Path) -> Path:
    return source / "results.csv" if source.is_dir() else source


def _failure(path: Path) -> str:
    """The run and the last line of its traceback."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[0]}: {lines[-1]}" if lines else path.stem


def _in_order(
    problems: Sequence[str], methods: Sequence[str]
) -> Callable[["pd.Series[Any]"], "pd.Series[Any]"]:
    """A key to sort by: problems and methods by their places, all else as it is."""
    places = {name: {x: i for i, x in enumerate(names)}
              for name, names in (("problem", problems), ("method", methods))}  # fmt: skip
    return lambda column: column.map(places[column.name]) if column.name in places else column
