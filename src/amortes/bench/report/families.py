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

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from amortes.bench.problems.registry import family_of
from amortes.bench.report.load import RUN, Results, common_rows
from amortes.bench.report.names import label_of, order_methods, parse_method
from amortes.bench.report.parts import Part, Study, Table, section, spread, text_of
from amortes.optimiser.text import counted

BUDGETS = (20, 40, 60, 100)
FLOOR = 1e-4
"""Regrets count as at least this share of what the first points leave, the median over runs: users
do not care for less, and exact hits of a pool would outweigh all else."""
REFERENCES = ("auto", "jes", "logei")
CELL = ["family", "problem", "seed", "n"]


@section(
    "families",
    "By family of problems",
    "At equal numbers of observations, by simple regret without noise and by inference regret "
    "with it: low ranks are good, and positive differences of log10 regret are worse than the "
    "reference.",
)
def families(study: Study) -> Iterator[Part]:
    """Tables by family; none if no run has at least 20 observations."""
    found = regrets(study.results)
    methods = order_methods(found["method"])
    if len(methods) < 2:
        yield f"No two methods were run for {BUDGETS[0]} observations on the same problems."
        return
    ours = [name for name in methods if parse_method(name).is_ours]
    reference = next((name for name in REFERENCES if name in ours), (ours or methods)[0])
    if left_out := [name for name in study.results.methods if name not in methods]:
        yield f"Left out, as they were run on few of the problems: {', '.join(left_out)}."
    title = f"Average rank of {len(methods)} methods after n observations, by family"
    yield Table("families-ranks", title, _ranks_table(found))
    wide = found.pivot(index=CELL, columns="method", values="log_regret")
    others = [name for name in methods if name != reference]
    differences = wide[others].sub(wide[reference], axis=0).round(9)
    label = label_of(reference)
    title = f"log10 regret minus that of {label}, ± standard error over problems, by family"
    yield Table("families-differences", title, _against(differences, text_of))
    title = f"Win rate of {label} against each method, by family"
    won = (differences > 0) + (differences == 0) / 2.0
    rates = _against(won, lambda rows: [f"{mean:.0%}" for mean in rows["mean"]])
    yield Table("families-wins", title, rates)


def regrets(results: Results) -> pd.DataFrame:
    """Columns family, problem, seed, n, method, log_regret (floored), rank; common cells only."""
    rows, _ = common_rows(results, results.problems)
    methods, problem = rows["method"].nunique(), rows.groupby("problem")
    plain = ~(problem["noise_sd"].transform("max") > 0)
    recorded = problem["simple_value"].transform("count") == problem["iteration"].transform("size")
    value = rows["simple_value"].where(plain & recorded, rows["value"])
    known = pd.concat([value, rows["regret"] + rows["value"]], axis=1).max(axis=1)
    rows = rows.assign(regret=known.groupby(rows["problem"]).transform("max") - value)
    first = rows.drop_duplicates(RUN).groupby("problem")["regret"].median()
    floor = FLOOR * rows["problem"].map(first)
    rows = rows.assign(
        family=rows["problem"].map(family_of),
        n=rows["iteration"],
        log_regret=np.log10(np.maximum(rows["regret"], floor.where(floor > 0))),
    )
    # Where the floor is zero, the first points always hold the best one.
    rows = rows[rows["n"].isin(BUDGETS)].dropna(subset="log_regret")
    rows = rows[rows.groupby(CELL)["method"].transform("count") == methods]
    # Values that differ by rounding only share a rank.
    ranks = rows.assign(log_regret=rows["log_regret"].round(9)).groupby(CELL)["log_regret"].rank()
    return rows.assign(rank=ranks)


def _by_family(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean, standard error and count over problems, by family (or all), n and method."""
    keys = ["family", "n", "method"]
    problems = rows.groupby([*keys, "problem"])[column].mean().groupby(keys)
    found = problems.agg(mean="mean", standard_error="sem", count="count").reset_index()
    if rows["family"].nunique() > 1:
        groups = found.assign(squared=found["standard_error"] ** 2).groupby(["n", "method"])
        total = groups.agg(mean=("mean", "mean"), count=("count", "sum"))
        total["standard_error"] = groups["squared"].sum(min_count=1) ** 0.5 / groups.size()
        found = pd.concat([found, total.reset_index().assign(family="all")])
    return found


def _ranks_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each method, a column for each family, ranks after each budget."""
    ranks = _by_family(rows, "rank")
    last = ranks[ranks["family"] == ranks["family"].iloc[-1]]  # the only family, or all
    last = last[last["n"] == last["n"].max()].sort_values("mean", kind="stable")
    columns = {"method": [*map(label_of, last["method"])]}
    for family, found in ranks.groupby("family", sort=False):
        budgets = " / ".join(map(str, sorted(set(found["n"]))))
        head = f"{family} ({counted(found['count'].iloc[0], 'problem')}; n = {budgets})"
        cells = found.assign(cell=found["mean"].map("{:.1f}".format)).groupby("method")["cell"]
        columns[head] = cells.agg(" / ".join)[last["method"]].tolist()
    return pd.DataFrame(columns)


def _against(wide: pd.DataFrame, cells: Callable[[pd.DataFrame], list[str]]) -> pd.DataFrame:
    """A row for each family and budget, a column for each method but the reference."""
    found = _by_family(wide.melt(ignore_index=False, var_name="method").reset_index(), "value")
    table = spread(found, ["family", "n"], "method", cells(found))
    return table[["family", "n", *wide.columns]].rename(columns=label_of)
