"""Results of sweeps that never happened."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amortes.bench.report.load import Results, arrange
from amortes.bench.report.parts import Drawing, Section, Study, Table


@dataclass
class Made:
    """The parts of a section by kind."""

    drawings: list[Drawing]
    tables: list[Table]
    notes: list[str]


def make(section: Section, study: Study) -> Made:
    parts = list(section.make(study))
    return Made(
        [part for part in parts if isinstance(part, Drawing)],
        [part for part in parts if isinstance(part, Table)],
        [part for part in parts if isinstance(part, str)],
    )


def write_sweep(
    folder: Path,
    *,
    problems: Sequence[str] = ("branin",),
    methods: Sequence[str] = ("jes",),
    seeds: int = 3,
    iterations: int = 30,
    skip: Iterable[tuple[str, str]] = (),
) -> Path:
    """Write results.csv and environment.json; `skip` has (problem, method) without runs."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [(p, m) for p in problems for m in methods if (p, m) not in set(skip)]
    rows = pd.concat(plausible(*pair, s, iterations) for pair in pairs for s in range(seeds))
    rows.to_csv(folder / "results.csv", index=False)
    (folder / "environment.json").write_text(json.dumps({"cpu": "imaginary", "python": "3.11"}))
    return folder


def plausible(problem: str, method: str, seed: int, iterations: int) -> pd.DataFrame:
    """A run whose regret falls, of most problems from 3; methods of a seed start alike."""
    rng = np.random.default_rng([seed, *map(ord, problem + method)])
    n = iterations - 1
    progress = np.cumsum(rng.uniform(0.0, 0.2, n)) * (0.3 if method == "random" else 1.0)
    regret = np.random.default_rng([seed, *map(ord, problem)]).uniform(2, 4) * 10**-progress
    if problem.startswith("hpob"):  # a pool has few values, so that methods tie
        regret = np.round(regret / 30, 3)
    best = 85.0 if problem.startswith("lcbench") else 1.0
    known = not problem.startswith("sklearn")
    fit = {"fb": 4.0, "map": 0.2}.get(method.split("-")[0], 0.05)
    return run(
        problem,
        method,
        seed,
        list(best - regret),
        first=2,
        regret=list(regret) if known else math.nan,
        fit=fit,
        search_seconds=2 * fit,
        noise_sd=0.316,
        x="[0.5]",
        version="0.1.0",
        commit="0123456789abcdef",
    )


def run(
    problem: str,
    method: str,
    seed: int,
    values: Sequence[float],
    *,
    first: int = 1,
    regret: Sequence[float] | float = math.nan,
    fit: Sequence[float] | float = math.nan,
    **columns: Any,
) -> pd.DataFrame:
    """A run with these values after `first`, `first + 1`, ... observations; searching is free."""
    search = 0.0 * np.array(fit)
    return pd.DataFrame(
        {
            "problem": problem,
            "method": method,
            "seed": seed,
            "d": 1,
            "iteration": range(first, first + len(values)),
            "value": [float(value) for value in values],
            "regret": regret,
            "threads": "1",
            "fit_seconds": fit,
            "search_seconds": search,
            "recommend_seconds": search,
            **columns,
        }
    )


def results(*runs: pd.DataFrame) -> Results:
    """A sweep with these runs."""
    return Results(arrange(pd.concat(runs, ignore_index=True)))


def curve(
    panel: str, method: str, start: float, end: float, n: int = 10, error: float = 0.1
) -> pd.DataFrame:
    """A straight curve after 1 to n observations."""
    return pd.DataFrame(
        {
            "panel": panel,
            "method": method,
            "iteration": range(1, n + 1),
            "mean": np.linspace(start, end, n),
            "standard_error": error,
            "samples": 30.0,
        }
    )
