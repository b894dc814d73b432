"""How well weights optimise functions of their own prior.

For each dimension and each size of noise, functions from the prior, the same for all methods; for
each method the inference regret after n observations. Weights are chosen by this, not by benchmark
functions.

Runs are kept in a cache: those of methods that use the weights in a folder named by the content of
the weights file, those of the others in one shared by all weights with the same prior.
"""

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amortes.bench.problems.prior import PriorFunction, label
from amortes.bench.protocol import MethodFactory
from amortes.bench.results import ResultsFolder, Run
from amortes.bench.sweep import Progress, named_method, sweep
from amortes.errors import ConfigError
from amortes.files import sha256
from amortes.oracles.store import CACHE_VARIABLE
from amortes.prior.engines import Engine
from amortes.prior.gp import GPPrior

DIMS = (2, 4, 6, 10)
NOISES = (0.02, 0.3)
OURS = ("pes", "mes", "jes", "ei", "logei")  # methods that use the weights
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "random")
RIVAL = "logei"  # win rates are against this one
ALL = ("all", "all")
# Regrets below it count as it. Many functions are highest in a corner, which a method finds
# exactly: a regret of 0, whose logarithm would outweigh all that happens on other functions. The
# functions have standard deviation 1 under the prior: a ten-thousandth matters to nobody.
FLOOR = 1e-4


@dataclass(frozen=True)
class Task:
    """One function under one noise."""

    d: int
    noise_sd: float
    index: int


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What to run."""

    prior: GPPrior
    weights: Path
    dims: tuple[int, ...] = ()  # default: those of `DIMS` that the prior covers
    noises: tuple[float, ...] = NOISES
    functions: int = 20
    evaluations: int = 60
    methods: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        covered = tuple(d for d in DIMS if self.prior.min_dim <= d <= self.prior.max_dim)
        object.__setattr__(self, "dims", self.dims or covered)
        for d in self.dims:
            self.prior.check_dim(d)
        if self.evaluations < max(self.dims, default=1):
            raise ConfigError(
                f"evaluations: must be at least d, not {self.evaluations} for d in {self.dims}."
            )
        if not self.dims or not self.methods or self.functions < 1:
            raise ConfigError(f"Nothing to run: {self}.")

    @property
    def tasks(self) -> dict[str, Task]:
        """What each problem is, by name; functions one after the other, so that all cells advance.

        The names are those of `PriorFunction`.
        """
        return {
            f"{label(self.prior)}-d{d}-noise{noise:g}-f{index}": Task(d, noise, index)
            for index in range(self.functions)
            for d in self.dims
            for noise in self.noises
        }

    def runs(self, methods: Sequence[str]) -> list[Run]:
        """All runs of some methods; the seed of a run is the index of the function."""
        return [
            Run(problem=name, method=method, seed=task.index, iterations=self.evaluations)
            for name, task in self.tasks.items()
            for method in methods
        ]


def evaluate_optimisation(
    setting: Setting,
    *,
    engine: Engine,
    cache: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] = lambda heard: None,
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Make the runs that are missing; rows of all of them, and tracebacks of those that failed."""
    root = Path(cache or os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "amortes")
    ours = [name for name in setting.methods if name in OURS]
    others = [name for name in setting.methods if name not in OURS]
    groups = [
        (ours, root / "bo" / sha256(setting.weights)[:16]),
        (others, root / "bo" / label(setting.prior)),
    ]
    rows: list[dict[str, Any]] = []
    failures: list[Path] = []
    total = len(setting.tasks) * len(setting.methods)
    before = 0
    for methods, folder in groups:
        runs = setting.runs(methods)
        summary = sweep(
            folder,
            runs,
            engine=engine,
            problem_maker=partial(_problem, setting.prior, setting.tasks),
            method_maker=partial(_method, str(setting.weights)),
            retry_failed=retry_failed,
            progress=partial(_forward, progress, before, total),
        )
        before += len(runs)
        rows += ResultsFolder(folder).rows(runs)
        failures += summary.failures
    return rows, failures


def summarise(rows: Sequence[dict[str, Any]], setting: Setting) -> list[dict[str, Any]]:
    """For each d, noise and method, and over all: mean log10 regret half-way and at the end.

    `error` is the standard error of the mean over functions, `wins` the share of functions on which
    the regret at the end is below that of `RIVAL` (equal counts half), `seconds` those per step.
    """
    half, end = max(setting.evaluations // 2, *setting.dims), setting.evaluations
    regret = {
        (row["method"], row["problem"], row["iteration"]): math.log10(max(row["regret"], FLOOR))
        for row in rows
        if row["iteration"] in (half, end)
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        taken = row["fit_seconds"] + row["search_seconds"] + row["recommend_seconds"]
        seconds.setdefault((row["method"], row["problem"]), []).append(taken)
    cells = [(str(d), f"{noise:g}") for d in setting.dims for noise in setting.noises]
    table = []
    for cell in [*cells, ALL]:
        names = [name for name, task in setting.tasks.items() if cell in (_cell(task), ALL)]
        for method in setting.methods:
            there = [name for name in names if (method, name, end) in regret]
            duels = [
                _duel(regret[method, name, end], regret[RIVAL, name, end])
                for name in there
                if (RIVAL, name, end) in regret
            ]
            scores: dict[str, Any] = {"d": cell[0], "noise": cell[1], "method": method}
            scores["functions"] = len(there)
            for n in (half, end):
                values = [regret[method, name, n] for name in there]
                scores |= {f"regret_{n}": _mean(values), f"error_{n}": _error(values)}
            scores["wins"] = None if method == RIVAL else _mean(duels)
            scores["seconds"] = _mean([t for name in there for t in seconds[method, name]])
            table.append(scores)
    return table


def _cell(task: Task) -> tuple[str, str]:
    return str(task.d), f"{task.noise_sd:g}"


def _problem(prior: GPPrior, tasks: Mapping[str, Task], name: str) -> PriorFunction:
    task = tasks[name]
    return PriorFunction(prior, d=task.d, index=task.index, noise_sd=task.noise_sd)


def _method(weights: str, name: str) -> MethodFactory:
    return named_method(f"{name}@{weights}" if name in OURS else name)


def _forward(
    progress: Callable[[Progress], None], before: int, total: int, heard: Progress
) -> None:
    """Count the runs of both groups together."""
    left = heard.seconds_left
    if left is not None and heard.total > heard.done:
        left *= (total - before - heard.done) / (heard.total - heard.done)
    progress(
        Progress(
            done=before + heard.done,
            total=total,
            run=heard.run,
            failure=heard.failure,
            seconds_left=left,
        )
    )


def _duel(own: float, other: float) -> float:
    return 0.5 if own == other else float(own < other)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _error(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return statistics.stdev(values) / math.sqrt(len(values))
