"""Results of a sweep that never happened: plausible curves for every kind of problem."""

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from amortes.bench.report.results import Results, arrange

COLUMNS = [
    *("problem", "d", "noise_sd", "method", "seed", "iteration", "x", "y", "recommended", "value"),
    *("regret", "fit_seconds", "search_seconds", "recommend_seconds", "threads", "version"),
    "commit",
]
DIMENSIONS = {
    "branin": 2,
    "hartmann4": 4,
    "ackley5": 5,
    "hartmann6": 6,
    "ackley8": 8,
    "hartmann4-noise0.5": 4,
    "hartmann6-noise0.5": 6,
    "lcbench-car": 7,
    "lcbench-Fashion-MNIST": 7,
    "lcbench-MiniBooNE": 7,
    "lcbench-higgs": 7,
    "lcbench-segment": 7,
    "hpob-5527-146064": 8,
    "hpob-5527-31": 8,
    "hpob-5891-9889": 8,
    "hpob-7609-3903": 9,
    "hpob-5965-49": 10,
    "hpob-5971-10093": 16,
    "sklearn-svm-digits": 4,
    "sklearn-boosting-diabetes": 5,
}
RATES = {
    "pes": 0.9,
    "mes": 1.0,
    "jes": 1.1,
    "ei": 0.95,
    "logei": 1.0,
    "jes@kernel-paper": 0.8,
    "fb-pes": 0.85,
    "fb-mes": 0.95,
    "fb-jes": 1.0,
    "fb-ei": 0.97,
    "map-logei": 0.9,
    "map-gibbon": 0.9,
    "map-jes": 0.88,
    "optuna-tpe": 0.6,
    "optuna-gp": 0.85,
    "smac-bb": 0.8,
    "smac-hpo": 0.65,
    "random": 0.35,
}
SECONDS = {"": (0.05, 0.08), "fb": (4.0, 9.0), "map": (0.2, 0.3), "optuna": (0.01, 0.02)}


def write_sweep(
    folder: Path,
    *,
    problems: Sequence[str] = tuple(DIMENSIONS),
    methods: Sequence[str] = tuple(RATES),
    seeds: int = 3,
    iterations: int = 30,
    skip: Iterable[tuple[str, str]] = (),
) -> Path:
    """Write results.csv and environment.json; `skip` has (problem, method) without runs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for problem in problems:
            for method in methods:
                if (problem, method) not in set(skip):
                    for seed in range(seeds):
                        writer.writerows(_rows(problem, method, seed, iterations))
    environment = {"cpu": "an imaginary one", "python": "3.11", "threads": 1}
    (folder / "environment.json").write_text(json.dumps(environment))
    return folder


def _rows(problem: str, method: str, seed: int, iterations: int) -> list[dict[str, object]]:
    d = DIMENSIONS[problem]
    rng = np.random.default_rng([seed, sum(map(ord, problem + method))])
    shared = np.random.default_rng([seed, sum(map(ord, problem))])
    n = np.arange(d, iterations + 1)
    progress = RATES[method] * np.cumsum(rng.uniform(0.5, 1.5, len(n))) / (8 + 4 * d)
    start = shared.uniform(0.8, 1.2)
    regret = 3 * start * 10 ** (-progress + 0.05 * rng.standard_normal(len(n)))
    if problem.startswith("hpob"):  # a pool has few values, so that methods tie
        regret = np.round(np.minimum.accumulate(regret) / 30, 3)
    best = 85.0 if problem.startswith("lcbench") else 1.0
    known = not problem.startswith("sklearn")
    kind = method.split("-")[0] if "-" in method and "@" not in method else ""
    fit, search = SECONDS.get(kind, SECONDS[""])
    times = (1 + n / 50) * np.exp(0.1 * rng.standard_normal(len(n)))
    point = json.dumps([0.5] * d)
    return [
        {
            "problem": problem,
            "d": d,
            "noise_sd": 0.5 if problem.endswith("0.5") else 0.316,
            "method": method,
            "seed": seed,
            "iteration": int(n[i]),
            "x": point,
            "y": float(best - regret[i]),
            "recommended": point,
            "value": float(best - regret[i]),
            "regret": float(regret[i]) if known else "",
            "fit_seconds": float(fit * times[i]),
            "search_seconds": float(search * times[i]),
            "recommend_seconds": 0.02,
            "threads": 1,
            "version": "0.1.0",
            "commit": "0123456789abcdef",
        }
        for i in range(len(n))
    ]


def run(
    problem: str,
    method: str,
    seed: int,
    values: Sequence[float],
    *,
    first: int = 1,
    regret: Sequence[float] | float = math.nan,
    fit: Sequence[float] | float = math.nan,
    **columns: object,
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
