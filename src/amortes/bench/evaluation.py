"""How well weights optimise functions of their own prior.

For each dimension and each size of noise, functions from the prior, the same for all methods; for
each method the inference regret after n observations. Weights are chosen by this, not by benchmark
functions.

Runs are kept in a cache: those of methods that use the weights in a folder named by the content of
the weights file, those of the others in one shared by all weights with the same prior.
"""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import amortes
from amortes.bench.environment import commit
from amortes.bench.prior_scores import error_of_means
from amortes.bench.problems.prior import PriorFunction, label
from amortes.bench.protocol import MethodFactory, weights_digest
from amortes.bench.results import PlannedRun, ResultsFolder
from amortes.bench.sweep import Progress, named_method, sweep
from amortes.engines import Engine
from amortes.errors import ConfigError
from amortes.files import AnyPath, cache_folder, sha256
from amortes.optimiser.suggest import ACQUISITIONS
from amortes.prior.gp import GPPrior

DIMS = (2, 4, 6, 10)
NOISES = (0.02, 0.3)
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "random")
RIVAL = "logei"  # win rates and differences are against this one
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

    def runs(self, methods: Sequence[str]) -> list[PlannedRun]:
        """All runs of some methods; the seed of a run is the index of the function."""
        return [
            PlannedRun(problem=name, method=method, seed=task.index, iterations=self.evaluations)
            for name, task in self.tasks.items()
            for method in methods
        ]


def evaluate_optimisation(
    setting: Setting,
    *,
    engine: Engine,
    cache: AnyPath | None = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] = lambda heard: None,
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Make the runs that are missing; rows of all of them, and tracebacks of those that failed."""
    for name in setting.methods:  # what none of its runs could do is found before the first
        weights_digest(_method(str(setting.weights), name))
    root = cache_folder(cache)
    ours = [name for name in setting.methods if name in ACQUISITIONS]
    others = [name for name in setting.methods if name not in ACQUISITIONS]
    groups = [
        (ours, root / "bo" / sha256(setting.weights)[:16]),
        (others, root / "bo" / label(setting.prior)),
    ]
    rows: list[dict[str, Any]] = []
    failures: list[Path] = []
    total = len(setting.tasks) * len(setting.methods)
    before = 0
    for methods, folder in groups:
        if not methods:  # somebody else may be at work there
            continue
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


def other_code(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many runs were made by another version or commit than this one, by what that is."""
    now = amortes.__version__, commit()
    made = {
        (row["problem"], row["method"], row["seed"]): (row["version"], row["commit"])
        for row in rows
    }
    then = Counter(code for code in made.values() if code != now)
    return {f"{version}, commit {of or 'unknown'}": n for (version, of), n in then.items()}


def summarise(rows: Sequence[dict[str, Any]], setting: Setting) -> list[dict[str, Any]]:
    """For each d, noise and method, and over all: mean log10 regret half-way and at the end.

    `error` is the standard error of a mean over functions; `difference` is the mean of log10 regret
    at the end minus that of `RIVAL` on the same function, `wins` the share of functions on which it
    is negative (zero counts half), `seconds` those per step. The same function under two noises
    counts as one over all, with the average of its two.
    """
    tasks = setting.tasks
    half, end = max(setting.evaluations // 2, *setting.dims), setting.evaluations
    regret = {
        (row["method"], row["problem"], row["iteration"]): math.log10(max(row["regret"], FLOOR))
        for row in rows
        if row["iteration"] in (half, end)
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["iteration"] > end:  # of a longer run
            continue
        taken = row["fit_seconds"] + row["search_seconds"] + row["recommend_seconds"]
        seconds.setdefault((row["method"], row["problem"]), []).append(taken)
    cells = [(str(d), f"{noise:g}") for d in setting.dims for noise in setting.noises]
    table = []
    for cell in [*cells, ALL]:
        names = [
            name
            for name, task in tasks.items()
            if cell in ((str(task.d), f"{task.noise_sd:g}"), ALL)
        ]
        for method in setting.methods:
            there = [name for name in names if (method, name, end) in regret]
            differences = [
                (tasks[name], regret[method, name, end] - regret[RIVAL, name, end])
                for name in there
                if (RIVAL, name, end) in regret and method != RIVAL
            ]
            scores: dict[str, Any] = {"d": cell[0], "noise": cell[1], "method": method}
            scores["functions"] = len(there)
            for n in (half, end):
                values = [(tasks[name], regret[method, name, n]) for name in there]
                mean, error = _mean_and_error(values)
                scores |= {f"regret_{n}": mean, f"error_{n}": error}
            mean, error = _mean_and_error(differences)
            scores |= {"difference": mean, "error_difference": error}
            scores["wins"] = _mean([0.5 if gap == 0 else float(gap < 0) for _, gap in differences])
            scores["seconds"] = _mean([t for name in there for t in seconds[method, name]])
            table.append(scores)
    return table


def _problem(prior: GPPrior, tasks: Mapping[str, Task], name: str) -> PriorFunction:
    task = tasks[name]
    return PriorFunction(prior, d=task.d, index=task.index, noise_sd=task.noise_sd)


def _method(weights: str, name: str) -> MethodFactory:
    return named_method(f"{name}@{weights}" if name in ACQUISITIONS else name)


def _forward(
    progress: Callable[[Progress], None], before: int, total: int, heard: Progress
) -> None:
    """Count the runs of both groups together."""
    done, left = before + heard.done, heard.seconds_left
    if left is not None and heard.total > heard.done:
        left *= (total - done) / (heard.total - heard.done)
    progress(dataclasses.replace(heard, done=done, total=total, seconds_left=left))


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _mean_and_error(values: Sequence[tuple[Task, float]]) -> tuple[float | None, float | None]:
    """Mean over dimensions of means over functions, and its standard error; None if unknown."""
    noises: dict[int, dict[int, list[float]]] = {}  # by dimension and index of the function
    for task, value in values:
        noises.setdefault(task.d, {}).setdefault(task.index, []).append(value)
    groups = [[statistics.fmean(v) for v in functions.values()] for functions in noises.values()]
    return _mean([statistics.fmean(group) for group in groups]), error_of_means(groups)
