"""How well weights optimise functions of their own prior.

For each dimension and each size of noise, functions from the prior, the same for all methods; for
each method the inference regret after n observations. Weights are chosen by this, not by benchmark
functions. A function depends on (prior, d, index) alone: it is the same under any noise, whose
standard deviation is given rather than drawn. Its maximum is found by search.

Runs are kept in a cache: those of methods that use the weights in a folder named by the content of
the weights file, those of the others in one shared by all weights with the same prior.
"""

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import amortes
from amortes.bench.protocol import SECONDS, MethodFactory, Problem, weights_digest
from amortes.bench.results import PlannedRun, ResultsFolder
from amortes.bench.sweep import Progress, commit, named_method, sweep
from amortes.engines import Engine
from amortes.errors import ConfigError
from amortes.files import AnyPath, cache_folder, sha256
from amortes.optimiser.suggest import ACQUISITIONS
from amortes.prior.gp import GPPrior
from amortes.prior.newton import NewtonConfig, maximise_paths
from amortes.prior.paths import Paths
from amortes.random import derive_seeds

BUDGET = 8  # times the search that training uses: a few milliseconds against a whole optimisation
SEED = 0x626F  # apart from the seeds of training streams, which count up from zero
DIMS = (2, 4, 6, 10)
NOISES = (0.02, 0.3)
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "random")
RIVAL = "logei"  # win rates and differences are against this one
ALL = ("all", "all")
# Regrets below it count as it. Many functions are highest in a corner, which a method finds
# exactly: a regret of 0, whose logarithm would outweigh all that happens on other functions. The
# functions have standard deviation 1 under the prior: a ten-thousandth matters to nobody.
FLOOR = 1e-4


class PriorFunction(Problem):
    """Function number `index` in dimension d of a prior, observed with the given noise."""

    best: float

    def __init__(self, prior: GPPrior, *, d: int, index: int, noise_sd: float) -> None:
        self.name = f"{label(prior)}-d{d}-noise{noise_sd:g}-f{index}"
        self.d, self.noise_sd = d, noise_sd
        seeds = derive_seeds(SEED, d, index, count=2)
        hyper = prior.sample(seeds[:1], d)
        self._path = Paths.sample(prior.kernel, hyper, seeds[1:], dtype=torch.float64)
        self.best = float(maximise_paths(self._path, NewtonConfig.for_dim(d, BUDGET)).f)

    def value(self, X: Tensor) -> Tensor:
        """The path at X, `m x d`: `m`."""
        return self._path(X[None]).squeeze(0)


def label(prior: GPPrior) -> str:
    """Name of the prior, and eight characters that change with anything else about it."""
    description: dict[str, Any] = prior.to_dict()
    name = description.pop("name")
    text = json.dumps(description, sort_keys=True)
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


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
    def tasks(self) -> dict[str, dict[str, Any]]:
        """What each `PriorFunction` is, by name; one after the other, so that all cells advance."""
        name = f"{label(self.prior)}-d{{}}-noise{{:g}}-f{{}}".format
        return {
            name(d, noise, index): {"d": d, "noise_sd": noise, "index": index}
            for index in range(self.functions)
            for d in self.dims
            for noise in self.noises
        }

    def runs(self, methods: Sequence[str]) -> list[PlannedRun]:
        """All runs of some methods; the seed of a run is the index of the function."""
        return [
            PlannedRun(problem=name, method=method, seed=task["index"], iterations=self.evaluations)
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
    tasks = pd.DataFrame.from_dict(setting.tasks, orient="index")
    half, end = max(setting.evaluations // 2, *setting.dims), setting.evaluations
    table = pd.DataFrame(rows, columns=["problem", "method", "iteration", "regret", *SECONDS])
    table = table[table["iteration"] <= end]  # there may be longer runs
    table = table.assign(log=np.log10(table["regret"].astype(float).clip(lower=FLOOR)))
    logs = table.pivot(index="problem", columns=["method", "iteration"], values="log")
    methods = dict.fromkeys([*setting.methods, RIVAL])
    wanted = pd.MultiIndex.from_product([methods, (half, end)])
    logs = logs.reindex(index=tasks.index, columns=wanted)
    seconds = table.set_index(["method", "problem"])[[*SECONDS]].sum(axis=1)
    cells = [(str(d), f"{noise:g}") for d in setting.dims for noise in setting.noises]
    found = []
    for d, noise in [*cells, ALL]:
        here = (tasks["d"].astype(str) == d) & (tasks["noise_sd"].map("{:g}".format) == noise)
        for method in setting.methods:
            own = logs[here | (d == "all")].dropna(subset=[(method, end)])
            gaps = own[method, end] - own[RIVAL, end] if method != RIVAL else own[method, end][:0]
            gaps = gaps.dropna()
            taken = seconds[seconds.index.isin((method, name) for name in own.index)]
            row = {"d": d, "noise": noise, "method": method, "functions": len(own)}
            for name, values in ((half, own[method, half]), (end, own[method, end])):
                row[f"regret_{name}"], row[f"error_{name}"] = _mean_and_error(values, tasks)
            row["difference"], row["error_difference"] = _mean_and_error(gaps, tasks)
            row["wins"] = float((gaps < 0).mean() + (gaps == 0).mean() / 2) if len(gaps) else None
            row["seconds"] = float(taken.mean()) if len(taken) else None
            found.append(row)
    return found


def _mean_and_error(
    values: "pd.Series[float]", tasks: pd.DataFrame
) -> tuple[float | None, float | None]:
    """Mean over dimensions of means over functions, and its standard error; None if unknown."""
    if values.empty:
        return None, None
    functions = values.groupby([tasks["d"], tasks["index"]]).mean()  # over noises
    groups = functions.groupby("d")
    error = math.sqrt((groups.sem() ** 2).sum(skipna=False)) / groups.ngroups
    return float(groups.mean().mean()), None if math.isnan(error) else error


def _problem(prior: GPPrior, tasks: Mapping[str, Any], name: str) -> PriorFunction:
    return PriorFunction(prior, **tasks[name])


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
