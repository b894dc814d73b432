"""Who beats whom: win rates, and ranks among methods that were run in the same cells.

A cell is a problem with a seed, where all methods start from the same points. Within it, methods
are compared by the value of what they recommend after as many observations as all of them have.
Ranks (1 is best, ties share the mean of their places) are averaged over the seeds of a problem,
then over problems, so that each task counts once. A rank depends on who else takes part, regret on
the task: only cells where all methods were run are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from amortes.bench.report.curves import task_curves
from amortes.bench.report.names import parse_method, same_acquisition
from amortes.bench.report.results import RUN, Results

CELL = ["problem", "seed"]
SHARE = 0.5
"""A method takes part if it was run in at least this share of the cells of the best-covered one."""


def count_wins(results: Results) -> pd.DataFrame:
    """Rows of `ours, theirs, problem, points, pairs` for all ordered pairs of methods.

    Points are 1 for a seed with a better end, 1/2 for a tie.
    """
    found = []
    for a, b in combinations(results.methods, 2):
        ends = results.scores[[a, b]].dropna().groupby(level=CELL).tail(1)
        points = (ends[a] > ends[b]) + (ends[a] == ends[b]) / 2.0
        sums = points.groupby(level="problem").agg(points="sum", pairs="count").reset_index()
        found.append(sums.assign(ours=a, theirs=b))
        found.append(sums.assign(ours=b, theirs=a, points=sums["pairs"] - sums["points"]))
    columns = ["ours", "theirs", "problem", "points", "pairs"]
    return pd.concat(found)[columns] if found else pd.DataFrame(columns=columns)


def gp_pairs(methods: Sequence[str]) -> list[tuple[str, str]]:
    """Ours with the default weights, each with the GPs that have the same acquisition."""
    pairs = []
    for model in ("fb", "map"):
        for ours in filter(lambda method: parse_method(method).is_ours, methods):
            theirs = same_acquisition(methods, parse_method(ours), model)
            pairs += [(ours, theirs)] if theirs else []
    return pairs


def of_pairs(wins: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """The wins of these pairs of methods, in their order."""
    found = [wins[(wins["ours"] == a) & (wins["theirs"] == b)] for a, b in pairs]
    return pd.concat([wins[:0], *found])


@dataclass(frozen=True, kw_only=True)
class Field:
    """Who is ranked against whom, and where."""

    methods: list[str]
    cells: "pd.MultiIndex"  # problem and seed
    left_out: list[str]  # methods that were run in too few cells

    @property
    def tasks(self) -> int:
        """The number of problems."""
        return self.cells.get_level_values("problem").nunique()

    def only(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of its methods in its cells."""
        inside = pd.MultiIndex.from_frame(rows[CELL]).isin(self.cells)
        return rows[inside & rows["method"].isin(self.methods)]

    def scores(self, results: Results) -> pd.DataFrame:
        """The scores of its methods where all of them have one."""
        chosen = results.scores[self.methods].dropna()
        return chosen[chosen.reset_index("iteration").index.isin(self.cells)]


def field_of(results: Results, problems: Sequence[str]) -> Field:
    """The methods to rank on some problems, and the cells where all of them were run."""
    runs = results.runs[results.runs["problem"].isin(problems)]
    there = runs.set_index(RUN)["iteration"].unstack("method").notna()
    methods = [method for method in results.methods if method in there]
    count = there.sum()
    chosen = [method for method in methods if count[method] >= SHARE * count.max()]
    while chosen and not there[chosen].all(axis=1).any():
        chosen.remove(min(chosen, key=lambda method: count[method]))
    return Field(
        methods=chosen,
        cells=pd.MultiIndex.from_tuples(
            there.index[there[chosen].all(axis=1)] if chosen else [], names=CELL
        ),
        left_out=[method for method in methods if method not in chosen],
    )


def average_ranks(results: Results, field: Field) -> pd.DataFrame:
    """Columns `rank, standard_error` for each method of a field, best first, at the end of runs."""
    ends = field.scores(results).groupby(level=CELL).tail(1)
    ranks = ends.rank(axis=1, ascending=False)
    if field.tasks > 1:
        ranks = ranks.groupby(level="problem").mean()
    found = pd.DataFrame({"rank": ranks.mean(), "standard_error": ranks.sem()})
    return found.sort_values("rank", kind="stable")


def rank_curves(results: Results, field: Field, panel: str) -> pd.DataFrame:
    """Average rank of each method after n observations, for the n that all cells have."""
    ranks = field.scores(results).rank(axis=1, ascending=False)
    rows = ranks.melt(ignore_index=False, var_name="method", value_name="rank").reset_index()
    return task_curves(rows, "rank", panel)


def regret_curves(results: Results, field: Field, panel: str) -> tuple[pd.DataFrame, list[str]]:
    """Regret as a share of what the initial points leave, averaged over tasks; tasks left out.

    The unit of a task is the mean regret of all its runs at their first iteration. A task whose
    initial points always contain the best one says nothing and is left out.
    """
    rows = field.only(results.rows)
    unit = rows.drop_duplicates(RUN).groupby("problem", sort=False)["regret"].mean()
    share = rows["regret"] / rows["problem"].map(unit)
    known = rows.assign(share=share)[rows["problem"].map(unit) > 0]
    return task_curves(known, "share", panel), list(unit.index[unit <= 0])
