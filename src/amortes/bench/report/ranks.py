"""Average ranks, and the HPO-B averages over tasks.

Within a (problem, seed), methods are ranked by the value of their recommendation (1 is best, ties
share the mean of their places). Ranks are averaged over the seeds of a problem, then over problems,
so that each task counts once; standard errors are over problems, or over seeds if there is but one.
A rank depends on who else takes part, and regret on the task: only cells where all methods were run
are used.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from amortes.bench.report.curves import Curve, align, average
from amortes.bench.report.results import Floats, Ints, Results, Run
from amortes.bench.report.statistics import mean_and_error
from amortes.bench.report.wins import last_common

Cell = tuple[str, int]
SHARE = 0.5
"""A method takes part if it was run in at least this share of the cells of the best-covered one."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """Who is ranked against whom, and where."""

    methods: list[str]
    cells: list[Cell]  # problem and seed
    left_out: list[str]  # methods that were run in too few cells


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Average ranks of the methods of a field, best first."""

    field: Field
    mean: dict[str, float]
    error: dict[str, float]


def field_of(results: Results, problems: Sequence[str]) -> Field:
    """The methods to rank on some problems, and the cells where all of them were run."""
    cells: dict[str, set[Cell]] = {}
    for method in results.methods:
        found = {(p, seed) for p in problems for seed in results.seeds(p, method)}
        if found:
            cells[method] = found
    most = max((len(found) for found in cells.values()), default=0)
    chosen = [method for method, found in cells.items() if len(found) >= SHARE * most]
    common: set[Cell] = set()
    while chosen and not (common := set.intersection(*(cells[method] for method in chosen))):
        chosen.remove(min(chosen, key=lambda method: len(cells[method])))
    return Field(
        methods=chosen,
        cells=sorted(common),
        left_out=[method for method in cells if method not in chosen],
    )


def average_ranks(results: Results, problems: Sequence[str]) -> Ranks:
    """Ranks at the last iteration that all methods of a cell have."""
    field = field_of(results, problems)
    by_problem = defaultdict(list)
    for problem, seed in field.cells:
        runs = [results.seeds(problem, method)[seed] for method in field.methods]
        if iteration := last_common(runs):
            by_problem[problem].append(_rank([[run.score_at(iteration)] for run in runs])[:, 0])
    samples = [np.mean(ranks, axis=0) for ranks in by_problem.values()]
    if len(samples) == 1:
        (samples,) = by_problem.values()
    table = np.array(samples, dtype=np.float64).reshape(len(samples), len(field.methods))
    mean, error, _ = mean_and_error(table)
    order = np.argsort(mean, kind="stable")
    return Ranks(
        field=field,
        mean={field.methods[i]: float(mean[i]) for i in order},
        error={field.methods[i]: float(error[i]) for i in order},
    )


def rank_curves(results: Results, problems: Sequence[str]) -> tuple[dict[str, Curve], Field]:
    """Average rank of each method after n observations, for the n that all cells have."""
    field = field_of(results, problems)
    series: dict[str, dict[str, list[tuple[Ints, Floats]]]] = defaultdict(lambda: defaultdict(list))
    for problem, seed in field.cells:
        runs = [results.seeds(problem, method)[seed] for method in field.methods]
        iterations, scores = align((run.iteration, run.score) for run in runs)
        whole = ~np.isnan(scores).any(0)
        for method, ranks in zip(field.methods, _rank(scores[:, whole]), strict=True):
            series[method][problem].append((iterations[whole], ranks))
    return {method: task_average(series[method]) for method in series}, field


def normalised_regret(
    results: Results, problems: Sequence[str]
) -> tuple[dict[str, Curve], list[str]]:
    """Regret as a share of what the initial points leave, averaged over tasks; tasks left out.

    Methods and cells are those of `field_of`. The unit of a task is the mean regret of all its runs
    at their first iteration. A task whose initial points always contain the best one says nothing
    and is left out.
    """
    field = field_of(results, problems)
    by_problem: dict[str, list[Run]] = defaultdict(list)
    for problem, seed in field.cells:
        by_problem[problem] += [results.seeds(problem, method)[seed] for method in field.methods]
    series: dict[str, dict[str, list[tuple[Ints, Floats]]]] = defaultdict(lambda: defaultdict(list))
    left_out = []
    for problem, runs in by_problem.items():
        unit = float(np.mean([run.regret[0] for run in runs]))
        if unit > 0:
            for run in runs:
                series[run.method][problem].append((run.iteration, run.regret / unit))
        elif not np.isnan(unit):
            left_out.append(problem)
    return {method: task_average(series[method]) for method in series}, left_out


def task_average(series: dict[str, list[tuple[Ints, Floats]]]) -> Curve:
    """Mean over the seeds of each task, then over tasks; only iterations that all tasks have."""
    if len(series) == 1:
        (samples,) = series.values()
        return average(samples)
    means = [average(samples) for samples in series.values()]
    curve = average((mean.iteration, mean.mean) for mean in means)
    keep = curve.count == len(means)
    return Curve(
        iteration=curve.iteration[keep],
        mean=curve.mean[keep],
        error=curve.error[keep],
        count=curve.count[keep],
    )


def _rank(scores: Sequence[Sequence[float]] | Floats) -> Floats:
    """Ranks within each column, `methods x k`; 1 is the highest score."""
    return np.asarray(rankdata(-np.asarray(scores, dtype=np.float64), axis=0), dtype=np.float64)
