"""By family of problems: average ranks, paired differences of log regret, and win rates.

What counts is simple regret where there is no noise, as users look at the best result then, and
inference regret where there is noise. Where nobody knows the best value of a problem, it is the
best one in the results. Only cells (problem and seed) where all methods were run are used.

    rank          within a cell, 1 is best, ties share
    difference    log10 regret of a method minus that of the reference, after flooring both
    win rate      share of cells in which the reference has less regret; equal counts half

Averages are over the seeds of a problem, then over problems; standard errors are over problems. In
"all", each family counts the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from amortes.bench.problems.registry import family_of
from amortes.bench.report.names import is_ours, parse_method
from amortes.bench.report.ranks import field_of
from amortes.bench.report.results import Floats, Results, Run
from amortes.bench.report.study import Section, Study, join
from amortes.bench.report.tables import Table, counted, with_error

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, int, str]  # family, n, method
Average = tuple[float, float, int]  # mean, standard error, number of problems
BUDGETS = (20, 40, 60, 100)
FLOOR = 1e-4
"""Regrets count as at least this share of what the first points leave, the median over runs: users
do not care for less, and exact hits of a pool would outweigh all else."""
REFERENCES = ("auto", "jes", "logei")


def families_section(study: Study) -> Section:
    """Tables by family; empty if no run has at least 20 observations."""
    found = regrets(study.results)
    methods = list(dict.fromkeys(found["method"]))
    title = "By family of problems"
    reading = (
        "At equal numbers of observations, by simple regret without noise and by inference regret "
        "with it: low ranks are good, and positive differences of log10 regret are worse than the "
        "reference."
    )
    if found.empty or len(methods) < 2:
        note = f"No two methods were run for {BUDGETS[0]} observations on the same problems."
        return Section(name="families", title=title, reading=reading, notes=[note])
    reference = next((name for name in REFERENCES if name in methods), methods[0])
    ours = [name for name in methods if is_ours(name)]
    if reference not in ours and ours:
        reference = ours[0]
    left_out = [name for name in study.results.methods if name not in methods]
    notes = [f"Left out, as they were run on few of the problems: {join(left_out)}."]
    return Section(
        name="families",
        title=title,
        reading=reading,
        tables=[
            _ranks_table(found),
            _against(found, reference, methods, wins=False),
            _against(found, reference, methods, wins=True),
        ],
        notes=notes if left_out else [],
    )


def regrets(results: Results) -> "pd.DataFrame":
    """Columns family, problem, seed, n, method, log_regret (floored), rank; common cells only."""
    import pandas as pd

    field = field_of(results, results.problems)
    rows = []
    for problem in dict.fromkeys(problem for problem, _ in field.cells):
        runs = [
            results.seeds(problem, method)[seed]
            for p, seed in field.cells
            if p == problem
            for method in field.methods
        ]
        curves = _regret_curves(runs)
        floor = FLOOR * float(np.median([curve[0] for curve in curves]))
        if not floor > 0:  # the first points always hold the best one
            continue
        for run, curve in zip(runs, curves, strict=True):
            for n in BUDGETS:
                if n in run.iteration:
                    regret = max(float(curve[run.iteration == n][0]), floor)
                    where = family_of(problem), problem, run.seed, n
                    rows.append((*where, run.method, np.log10(regret)))
    columns = ["family", "problem", "seed", "n", "method", "log_regret"]
    table = pd.DataFrame(rows, columns=columns)
    cell = ["problem", "seed", "n"]
    whole = table.groupby(cell)["method"].transform("count") == len(field.methods)
    table = table[whole].reset_index(drop=True)
    # Values that differ by rounding only share a rank.
    table["rank"] = table["log_regret"].round(9).groupby([table[c] for c in cell]).rank()
    return table


def _regret_curves(runs: Sequence[Run]) -> list[Floats]:
    """The regret that counts of each run of a problem, `k` each."""
    plain = not runs[0].noise_sd > 0
    simple = plain and all(run.simple is not None for run in runs)
    values = [run.simple if simple and run.simple is not None else run.value for run in runs]
    known = [run.regret + run.value for run in runs]
    best = max(float(np.nanmax(np.concatenate([*values, *known]))), -np.inf)
    return [best - value for value in values]


def _by_family(table: "pd.DataFrame", column: str) -> dict[Key, Average]:
    """Averages of a column for each family, or all, budget and method."""
    import pandas as pd

    keys = ["family", "n", "method"]
    problems = table.groupby([*keys, "problem"])[column].mean()
    found = problems.groupby(keys).agg(["mean", "sem", "count"]).reset_index()
    if table["family"].nunique() > 1:
        found["squared"] = found["sem"] ** 2
        groups = found.groupby(["n", "method"])
        total = groups.agg(mean=("mean", "mean"), count=("count", "sum"))
        total["sem"] = groups["squared"].sum(min_count=1) ** 0.5 / groups.size()
        found = pd.concat([found, total.reset_index().assign(family="all")])
    rows = found[[*keys, "mean", "sem", "count"]].to_numpy().tolist()
    return {(family, n, method): (mean, sem, count) for family, n, method, mean, sem, count in rows}


def _ranks_table(table: "pd.DataFrame") -> Table:
    """A row for each method, a column for each family, ranks after each budget."""
    ranks = _by_family(table, "rank")
    families = list(dict.fromkeys(family for family, _, _ in ranks))
    budgets = {f: sorted({n for other, n, _ in ranks if other == f}) for f in families}
    everything = families[-1]  # the only family, or all
    last = budgets[everything][-1]
    methods = sorted(set(table["method"]), key=lambda m: ranks[everything, last, m][0])
    problems = {f: ranks[f, budgets[f][0], methods[0]][2] for f in families}
    rows = [
        [
            parse_method(method).label,
            *(" / ".join(f"{ranks[f, n, method][0]:.1f}" for n in budgets[f]) for f in families),
        ]
        for method in methods
    ]
    heads = [f"{f} ({counted(problems[f], 'problem')}; {_slashed(budgets[f])})" for f in families]
    return Table(
        name="families-ranks",
        title=f"Average rank of {len(methods)} methods after n observations, by family",
        columns=["method", *heads],
        rows=rows,
    )


def _against(table: "pd.DataFrame", reference: str, methods: Sequence[str], *, wins: bool) -> Table:
    """A row for each family and budget, a column for each method but the reference."""
    cell = ["family", "problem", "seed", "n"]
    wide = table.pivot_table(index=cell, columns="method", values="log_regret")
    others = [method for method in methods if method != reference]
    differences = wide[others].sub(wide[reference], axis=0).round(9)
    long = differences.melt(ignore_index=False, var_name="method").reset_index()
    if wins:
        long["value"] = (np.sign(long["value"]) + 1.0) / 2.0
    found = _by_family(long, "value")
    rows = []
    for family, n in dict.fromkeys((family, n) for family, n, _ in found):
        averages = [found[family, n, method] for method in others]
        cells = [f"{mean:.0%}" if wins else with_error(mean, sem) for mean, sem, _ in averages]
        rows.append([family, str(n), *cells])
    label = parse_method(reference).label
    title = (
        f"Win rate of {label} against each method"
        if wins
        else f"log10 regret minus that of {label}, ± standard error over problems"
    )
    return Table(
        name="families-wins" if wins else "families-differences",
        title=f"{title}, by family",
        columns=["family", "n", *(parse_method(method).label for method in others)],
        rows=rows,
    )


def _slashed(budgets: Sequence[int]) -> str:
    return "n = " + " / ".join(map(str, budgets))
