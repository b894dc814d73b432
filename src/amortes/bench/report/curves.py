"""Averages over seeds: what a method has reached after n observations."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from amortes.bench.report.names import family
from amortes.bench.report.results import Floats, Ints, Results, Run
from amortes.bench.report.statistics import log_regret, mean_and_error

LABELS = {"regret": "log10 inference regret", "accuracy": "accuracy (%)", "value": "value"}
METRICS = {
    "synthetic": "regret",
    "noise": "regret",
    "lcbench": "accuracy",
    "hpob": "regret",
    "other": "value",
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A mean with its standard error; all fields have k entries."""

    iteration: Ints
    mean: Floats
    error: Floats  # NaN if there is one seed
    count: Floats  # samples behind the mean

    def at(self, iteration: int) -> tuple[float, float] | None:
        """Mean and error after so many observations; None if the curve is not defined there."""
        found = np.flatnonzero(self.iteration == iteration)
        return (float(self.mean[found[0]]), float(self.error[found[0]])) if len(found) else None


Curves = dict[str, dict[str, Curve]]
"""Problem, then method."""


def metric(problem: str) -> str:
    """What is drawn for a problem, a key of LABELS."""
    return METRICS[family(problem)]


def higher_is_better(name: str) -> bool:
    """Whether a metric is to be large."""
    return name != "regret"


def align(samples: Iterable[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Put series side by side: their iterations `k`, and `n x k` values with NaN for gaps."""
    series = list(samples)
    iterations = np.unique(np.concatenate([iteration for iteration, _ in series]))
    table = np.full((len(series), len(iterations)), np.nan)
    for row, (iteration, values) in zip(table, series, strict=True):
        row[np.searchsorted(iterations, iteration)] = values
    return iterations, table


def average(samples: Iterable[tuple[Ints, Floats]]) -> Curve:
    """Mean and standard error of series where at least half of them go on."""
    iterations, table = align(samples)
    mean, error, count = mean_and_error(table)
    keep = 2 * count >= max(count.max(), 1)
    return Curve(iteration=iterations[keep], mean=mean[keep], error=error[keep], count=count[keep])


def series(run: Run, name: str) -> tuple[Ints, Floats]:
    """The iterations of a run and what it has in a metric, `k` each."""
    return run.iteration, log_regret(run.regret) if name == "regret" else run.value


def method_curve(runs: Iterable[Run], name: str) -> Curve:
    """The curve of a method on a problem in a metric."""
    return average(series(run, name) for run in runs)


def all_curves(results: Results, problems: Iterable[str]) -> Curves:
    """A curve for each problem and method, in the metric of the problem, where that is known."""
    curves: Curves = {}
    for problem in problems:
        for method in results.on(problem):
            curve = method_curve(results.seeds(problem, method).values(), metric(problem))
            if len(curve.iteration):
                curves.setdefault(problem, {})[method] = curve
    return curves
