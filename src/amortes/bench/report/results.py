"""Reading `results.csv`: a row for each problem, method, seed and iteration."""

import contextlib
import csv
import gzip
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from amortes.bench.report.names import canonical, order_methods, order_problems
from amortes.bench.report.tables import counted
from amortes.errors import FileError
from amortes.files import read_json

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEEDED = ("problem", "d", "method", "seed", "iteration", "value", "regret")
SECONDS = ("fit_seconds", "search_seconds", "recommend_seconds")
OPTIONAL = (
    *("noise_sd", *SECONDS, "threads", "version", "commit", "weights"),
    *("simple_value", "simple_regret"),
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One method on one problem with one seed, after n observations for each n in `iteration`."""

    problem: str
    method: str
    seed: int
    d: int
    noise_sd: float
    threads: str
    iteration: Ints  # k, ascending
    value: Floats  # k; without noise, at the recommended point
    regret: Floats  # k; NaN if the best value is unknown
    seconds: Floats  # k x 3: fit, search, recommend; NaN if not measured
    simple: Floats | None = None  # k; without noise, at the best observation; None if not recorded

    @property
    def last(self) -> int:
        """Observations at the end of the run."""
        return int(self.iteration[-1])

    @property
    def score(self) -> Floats:
        """What comparisons go by, higher is better, `k`."""
        return -self.regret if np.isnan(self.value).all() else self.value

    def score_at(self, iteration: int) -> float:
        """The score after so many observations; NaN if that was not recorded."""
        found = np.flatnonzero(self.iteration == iteration)
        return float(self.score[found[0]]) if len(found) else math.nan


@dataclass(frozen=True)
class Results:
    """All runs of a sweep, or of several."""

    runs: Sequence[Run]
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
        return order_problems(run.problem for run in self.runs)

    @cached_property
    def methods(self) -> list[str]:
        """In the order of the report."""
        return order_methods(run.method for run in self.runs)

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str], dict[int, Run]]:
        cells: dict[tuple[str, str], dict[int, Run]] = defaultdict(dict)
        for run in self.runs:
            cells[run.problem, run.method][run.seed] = run
        return dict(cells)

    def seeds(self, problem: str, method: str) -> dict[int, Run]:
        """The runs of a method on a problem, by seed; empty if there are none."""
        return self._by_cell.get((problem, method), {})

    def on(self, problem: str) -> list[str]:
        """Methods that were run on a problem."""
        return [method for method in self.methods if self.seeds(problem, method)]


def load_results(*sources: Path) -> Results:
    """Read folders of sweeps, their results.csv or packed files; environment.json if there is one.

    Of a run that several of them have, that of the last one counts, as a whole. Of a folder, the
    runs that are finished are read, which results.csv has only once the sweep is.
    """
    found: dict[Key, list[Row]] = {}
    incomplete = replaced = 0
    for source in sources:
        here: dict[Key, list[Row]] = defaultdict(list)
        for path in tables(source):
            incomplete += _read(path, here)
        replaced += len(found.keys() & here.keys())
        found |= here
    runs = [_run(key, rows) for key, rows in found.items()]
    duplicates = sum(map(len, found.values())) - sum(len(run.iteration) for run in runs)
    notes = []
    if incomplete:
        notes.append(f"{incomplete} rows have neither value nor regret and are left out.")
    if duplicates:
        notes.append(f"{duplicates} rows repeat an iteration of a run; the last one counts.")
    if replaced:
        notes.append(
            f"Replaced by what a later sweep has of the same problem, method and seed: "
            f"{counted(replaced, 'run')}."
        )
    digests_of: dict[str, set[str]] = defaultdict(set)
    for (_, method, _), rows in found.items():
        digests_of[method] |= {row.weights for row in rows}
    weights = {method: sorted(d) for method, d in digests_of.items() if d != {""}}
    for method, digests in weights.items():
        if len(digests) > 1:
            listed = ", ".join(digest or "not recorded" for digest in digests)
            notes.append(f"{method}: its runs were made with different weights ({listed}).")
    folders = dict.fromkeys(_table(source).parent.resolve() for source in sources)
    return Results(
        runs=runs,
        environments=[
            read_json(path) for folder in folders if (path := folder / "environment.json").is_file()
        ],
        versions=sorted({row.version for rows in found.values() for row in rows} - {""}),
        commits=sorted({row.commit for rows in found.values() for row in rows} - {""}),
        weights=weights,
        failures=[
            _failure(file)
            for folder in folders
            for file in sorted((folder / "failures").glob("*.txt"))
        ],
        notes=notes,
    )


def tables(source: Path) -> list[Path]:
    """The files with the results of a sweep: those of its finished runs, or all in one."""
    return sorted(source.glob("runs/*.csv")) or [_table(source)]


@contextlib.contextmanager
def open_table(path: Path) -> Iterator[TextIO]:
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


def check_columns(path: Path, header: Sequence[str]) -> None:
    """Refuse a file that has no results."""
    if missing := [name for name in NEEDED if name not in header]:
        raise FileError(
            f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(header)}. "
            "Is it a results file of `amortes bench run`?"
        )


def _table(source: Path) -> Path:
    return source / "results.csv" if source.is_dir() else source


Key = tuple[str, str, int]


class Row(NamedTuple):
    """What a line of a results file says about a run."""

    iteration: int
    numbers: tuple[float, ...]  # value, regret, SECONDS and simple value
    d: int
    noise_sd: float
    threads: str
    version: str
    commit: str
    weights: str


def _read(path: Path, found: dict[Key, list[Row]]) -> int:
    """Add what a results.csv has; returns the number of rows without a result."""
    incomplete = read = 0
    with open_table(path) as file:
        reader = csv.reader(file)
        header = next(reader, [])
        check_columns(path, header)
        place = {name: header.index(name) for name in (*NEEDED, *OPTIONAL) if name in header}

        for cells in reader:
            try:
                text = {name: cells[i] for name, i in place.items()}
                value, regret = _number(text["value"]), _number(text["regret"])
                if math.isnan(value) and math.isnan(regret):
                    incomplete += 1
                    continue
                key = canonical(text["problem"]), text["method"], int(text["seed"])
                seconds = (_number(text.get(name, "")) for name in SECONDS)
                found[key].append(
                    Row(
                        iteration=int(text["iteration"]),
                        numbers=(value, regret, *seconds, _number(text.get("simple_value", ""))),
                        d=int(text["d"]),
                        noise_sd=_number(text.get("noise_sd", "")),
                        threads=text.get("threads", ""),
                        version=text.get("version", ""),
                        commit=text.get("commit", ""),
                        weights=text.get("weights", ""),
                    )
                )
            except (ValueError, IndexError) as error:
                raise FileError(
                    f"{path}, line {reader.line_num}: {error}. Delete the line, or run again "
                    "what wrote it."
                ) from error
            read += 1
    if not read:
        raise FileError(f"{path} has no results: no row has a value or a regret.")
    return incomplete


def _failure(path: Path) -> str:
    """The run and the last line of its traceback."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[0]}: {lines[-1]}" if lines else path.stem


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _run(key: Key, rows: Sequence[Row]) -> Run:
    by_iteration = {row.iteration: row for row in rows}
    ordered = [by_iteration[i] for i in sorted(by_iteration)]
    numbers = np.array([row.numbers for row in ordered], dtype=np.float64)
    return Run(
        problem=key[0],
        method=key[1],
        seed=key[2],
        d=ordered[-1].d,
        noise_sd=ordered[-1].noise_sd,
        threads=ordered[-1].threads,
        iteration=np.array([row.iteration for row in ordered], dtype=np.int64),
        value=numbers[:, 0],
        regret=numbers[:, 1],
        seconds=numbers[:, 2:5],
        simple=None if np.isnan(numbers[:, 5]).any() else numbers[:, 5],
    )
