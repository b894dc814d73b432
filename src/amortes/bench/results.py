"""A folder of results: one small file per finished run, and all of them in one tidy table.

    runs/<problem>__<method>__<seed>.csv     a finished run
    failures/<problem>__<method>__<seed>.txt the traceback of a run that failed
    results.csv                              all finished runs, one row per observation
    environment.json                         on what machine, with what versions

Columns of a run and of results.csv, a row for each n from d to N:

    problem, d, noise_sd, method, seed
    iteration       n: observations so far, which include the d initial ones
    x, y            the newest observation; x is a JSON list
    recommended     JSON list; the point believed best after n observations
    value, regret   of the function, without noise, at that point; regret is empty if unknown
    simple_value, simple_regret    the same at the point with the best observation
    fit_seconds, search_seconds, recommend_seconds     what the method took after n observations
    threads, version, commit
    weights         of our methods: the start of the SHA-256 of the weights file; else empty

Files are written whole or not at all, by one process, which holds a lock on the folder.
"""

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amortes.bench.protocol import SECONDS, Problem, Record
from amortes.files import AnyPath, atomic_path, locked, write_text

RESULTS, ENVIRONMENT = "results.csv", "environment.json"
DIGITS = 9  # of coordinates: float32 pools stay distinct
COLUMNS = (
    *("problem", "d", "noise_sd", "method", "seed"),
    *(field.name for field in dataclasses.fields(Record)),
    *("version", "commit", "weights"),
)
WORDS = ("problem", "method", "version", "commit", "weights")  # the others are JSON, or empty


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What is to be done: a method on a problem, up to so many observations."""

    problem: str
    method: str
    seed: int
    iterations: int

    @property
    def filename(self) -> str:
        """The name of its files, without suffix."""
        parts = (self.problem, self.method, str(self.seed))
        return "__".join(urllib.parse.quote(part, safe="@") for part in parts)

    def __str__(self) -> str:
        return f"{self.problem}, {self.method}, seed {self.seed}"


def run_csv(
    run: PlannedRun,
    problem: Problem,
    records: Iterable[Record],
    *,
    version: str,
    commit: str,
    weights: str = "",
) -> str:
    """The file of a finished run."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for record in records:
        row = vars(record) | vars(run) | {"d": problem.d, "noise_sd": problem.noise_sd}
        row |= {"version": version, "commit": commit, "weights": weights}
        for name in ("x", "recommended"):
            row[name] = json.dumps([round(u, DIGITS) for u in row[name]])
        for name in SECONDS:
            row[name] = f"{row[name]:.6f}"
        writer.writerow(row)
    return text.getvalue()


class ResultsFolder:
    """The folder of a sweep; see the module."""

    def __init__(self, folder: AnyPath) -> None:
        self.path = Path(folder)

    def finished(self, run: PlannedRun) -> bool:
        """Whether the run, or a longer one, is there and whole."""
        rows = self._rows(self._run_file(run))
        return max((int(row["iteration"]) for row in rows), default=0) >= run.iterations

    def weights(self) -> dict[str, set[str]]:
        """Digests of the weights that the runs of each method were made with; empty for none."""
        digests: dict[str, set[str]] = defaultdict(set)
        for path in self._run_files():
            for row in itertools.islice(self._rows(path), 1):  # all rows of a run say the same
                digests[row["method"]].add(row["weights"])
        return dict(digests)

    def failed(self, run: PlannedRun) -> bool:
        """Whether the run was tried in vain."""
        return self.failure_file(run).exists()

    def failure_file(self, run: PlannedRun) -> Path:
        """Where the traceback of a failed run is."""
        return self.path / "failures" / f"{run.filename}.txt"

    def put(self, run: PlannedRun, text: str) -> None:
        """Keep the file of a finished run; forget that it ever failed."""
        write_text(self._run_file(run), text)
        self.failure_file(run).unlink(missing_ok=True)

    def put_failure(self, run: PlannedRun, traceback: str) -> Path:
        """Keep a traceback; returns where."""
        write_text(self.failure_file(run), f"{run}\n\n{traceback}")
        return self.failure_file(run)

    def rows(self, runs: Iterable[PlannedRun] | None = None) -> list[dict[str, Any]]:
        """Rows of all finished runs, or of these, sorted, with numbers as numbers."""
        files = self._run_files() if runs is None else [self._run_file(run) for run in runs]
        found = [_typed(row) for file in files for row in self._rows(file)]
        return sorted(
            found, key=lambda r: [r[k] for k in ("problem", "method", "seed", "iteration")]
        )

    def merge(self) -> Path:
        """Write results.csv from all finished runs."""
        target = self.path / RESULTS
        with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.write(",".join(COLUMNS) + "\n")
            for text in (path.read_text(encoding="utf-8") for path in self._run_files()):
                header, _, rows = text.partition("\n")
                if header == ",".join(COLUMNS):
                    file.write(rows)
        return target

    def clear_temporary(self) -> None:
        """Remove the temporary files that killed sweeps left."""
        for folder in (self.path, self.path / "runs", self.path / "failures"):
            for stale in folder.glob(".*.tmp"):
                stale.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other sweeps out."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path, "sweep"):
            yield

    def _run_file(self, run: PlannedRun) -> Path:
        return self.path / "runs" / f"{run.filename}.csv"

    def _run_files(self) -> list[Path]:
        return sorted((self.path / "runs").glob("*.csv"))

    def _rows(self, path: Path) -> Iterator[dict[str, str]]:
        """Rows of the file of a run; none if there is none, or it has other columns."""
        if not path.is_file():
            return
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) == COLUMNS:
                yield from reader


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: text if name in WORDS else json.loads(text) if text else None
        for name, text in row.items()
    }
