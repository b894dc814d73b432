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

import numpy as np
import pandas as pd

from amortes.bench.problems.registry import family_of
from amortes.bench.report.comparisons import field_of
from amortes.bench.report.names import parse_method
from amortes.bench.report.parts import Section, Study, Table
from amortes.bench.report.results import RUN, Results
from amortes.bench.report.text import counted, with_error

BUDGETS = (20, 40, 60, 100)
FLOOR = 1e-4
"""Regrets count as at least this share of what the first points leave, the median over runs: users
do not care for less, and exact hits of a pool would outweigh all else."""
REFERENCES = ("auto", "jes", "logei")
CELL = ["family", "problem", "seed", "n"]


def families_section(study: Study) -> Section:
    """Tables by family; empty if no run has at least 20 observations."""
    found = regrets(study.results)
    methods = [name for name in study.results.methods if name in set(found["method"])]
    if len(methods) < 2:
        note = f"No two methods were run for {BUDGETS[0]} observations on the same problems."
        return Section("families", notes=[note])
    ours = [name for name in methods if parse_method(name).is_ours]
    reference = next((name for name in REFERENCES if name in ours), (ours or methods)[0])
    left_out = [name for name in study.results.methods if name not in methods]
    notes = [f"Left out, as they were run on few of the problems: {', '.join(left_out)}."]
    return Section(
        "families",
        tables=[
            _ranks_table(found),
            _against(found, reference, methods, wins=False),
            _against(found, reference, methods, wins=True),
        ],
        notes=notes if left_out else [],
    )


def regrets(results: Results) -> pd.DataFrame:
    """Columns family, problem, seed, n, method, log_regret (floored), rank; common cells only."""
    field = field_of(results, results.problems)
    rows = field.only(results.rows)
    problem = rows.groupby("problem")
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
    rows = rows[rows.groupby(CELL)["method"].transform("count") == len(field.methods)]
    # Values that differ by rounding only share a rank.
    ranks = rows.assign(log_regret=rows["log_regret"].round(9)).groupby(CELL)["log_regret"].rank()
    return rows.assign(rank=ranks)


def _by_family(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean, sem and count of a column over problems, by family (or all), n and method."""
    keys = ["family", "n", "method"]
    problems = rows.groupby([*keys, "problem"])[column].mean()
    found = problems.groupby(keys).agg(["mean", "sem", "count"]).reset_index()
    if rows["family"].nunique() > 1:
        groups = found.assign(squared=found["sem"] ** 2).groupby(["n", "method"])
        total = groups.agg(mean=("mean", "mean"), count=("count", "sum"))
        total["sem"] = groups["squared"].sum(min_count=1) ** 0.5 / groups.size()
        found = pd.concat([found, total.reset_index().assign(family="all")])
    return found


def _ranks_table(rows: pd.DataFrame) -> Table:
    """A row for each method, a column for each family, ranks after each budget."""
    ranks = _by_family(rows, "rank")
    last = ranks[ranks["family"] == ranks["family"].iloc[-1]]  # the only family, or all
    last = last[last["n"] == last["n"].max()].sort_values("mean", kind="stable")
    columns = {"method": [parse_method(method).label for method in last["method"]]}
    for family, found in ranks.groupby("family", sort=False):
        budgets = " / ".join(map(str, sorted(set(found["n"]))))
        head = f"{family} ({counted(found['count'].iloc[0], 'problem')}; n = {budgets})"
        cells = found.assign(cell=found["mean"].map("{:.1f}".format)).groupby("method")["cell"]
        columns[head] = cells.agg(" / ".join)[last["method"]].tolist()
    return Table("families-ranks", pd.DataFrame(columns), words={"methods": len(last)})


def _against(rows: pd.DataFrame, reference: str, methods: list[str], *, wins: bool) -> Table:
    """A row for each family and budget, a column for each method but the reference."""
    wide = rows.pivot(index=CELL, columns="method", values="log_regret")
    others = [method for method in methods if method != reference]
    differences = wide[others].sub(wide[reference], axis=0).round(9)
    if wins:
        differences = (differences > 0) + (differences == 0) / 2.0
    found = _by_family(
        differences.melt(ignore_index=False, var_name="method").reset_index(), "value"
    )
    if wins:
        cells = [f"{mean:.0%}" for mean in found["mean"]]
    else:
        cells = [with_error(*pair) for pair in zip(found["mean"], found["sem"], strict=True)]
    order = pd.MultiIndex.from_frame(found[["family", "n"]].drop_duplicates())
    wide = found.assign(cell=cells).pivot(index=["family", "n"], columns="method", values="cell")
    wide = wide.reindex(index=order, columns=others).reset_index().astype(str)
    wide.columns = pd.Index(["family", "n", *(parse_method(method).label for method in others)])
    words = {"reference": parse_method(reference).label}
    return Table("families-wins" if wins else "families-differences", wide, words=words)
