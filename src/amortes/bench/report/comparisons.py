"""Who beats whom: win rates, and ranks among methods that were run in the same cells.

A cell is a problem with a seed, where all methods start from the same points. Within it, methods
are compared by the value of what they recommend after as many observations as all of them have.
Ranks (1 is best, ties share the mean of their places) are averaged over the seeds of a problem,
then over problems, so that each task counts once. A rank depends on who else takes part, regret on
the task: only cells where all methods were run are used.

    win rate        mean over pairs of 1 (better), 1/2 (equal), 0 (worse)
    its interval    Wilson, E. B. (1927): Probable inference, JASA 22, 209-212
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import norm

from amortes.bench.report.names import order_methods, parse_method, same_acquisition
from amortes.bench.report.results import RUN, Results

CELL = ["problem", "seed"]
PAIR = ["ours", "theirs"]
SHARE = 0.5
"""A method takes part if it was run in at least this share of the cells of the best-covered one."""


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """What comparisons go by, higher is better: methods across; problem, seed and n down."""
    return rows.pivot(index=[*CELL, "iteration"], columns="method", values="score")


def count_wins(results: Results) -> pd.DataFrame:
    """Rows of `ours, theirs, problem, points, pairs` for all ordered pairs of methods.

    Points are 1 for a seed with a better end, 1/2 for a tie.
    """
    found, every = [], scores(results.rows)
    for a, b in combinations(results.methods, 2):
        ends = every[[a, b]].dropna().groupby(level=CELL).tail(1)
        points = (ends[a] > ends[b]) + (ends[a] == ends[b]) / 2.0
        sums = points.groupby(level="problem").agg(points="sum", pairs="count").reset_index()
        found.append(sums.assign(ours=a, theirs=b))
        found.append(sums.assign(ours=b, theirs=a, points=sums["pairs"] - sums["points"]))
    columns = [*PAIR, "problem", "points", "pairs"]
    return pd.concat(found)[columns] if found else pd.DataFrame(columns=columns)


def with_rates(wins: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Sums of points and pairs, the win rate and its 95% interval (`low`, `high`)."""
    sums = wins.groupby([*keys], sort=False)[["points", "pairs"]].sum().reset_index()
    rate = sums["points"] / sums["pairs"]
    width = norm.ppf(0.975) ** 2 / sums["pairs"]
    middle = (rate + width / 2) / (1 + width)
    half = np.sqrt(rate * (1 - rate) * width + width**2 / 4) / (1 + width)
    return sums.assign(rate=rate, low=(middle - half).clip(0.0), high=(middle + half).clip(upper=1))


def gp_pairs(methods: Sequence[str]) -> list[tuple[str, str]]:
    """Ours with the default weights, each with the GPs that have the same acquisition."""
    ours = [method for method in methods if parse_method(method).is_ours]
    found = [(a, same_acquisition(methods, a, model)) for model in ("fb", "map") for a in ours]
    return [(a, b) for a, b in found if b]


def of_pairs(wins: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """The wins of these pairs of methods, in their order."""
    found = [wins[(wins["ours"] == a) & (wins["theirs"] == b)] for a, b in pairs]
    return pd.concat([wins[:0], *found])


def common_rows(results: Results, problems: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of the cells where all methods were run, and the methods run in too few of them."""
    runs = results.runs[results.runs["problem"].isin(problems)]
    there = runs.set_index(RUN)["iteration"].unstack("method").notna()
    count = there.sum().reindex(order_methods(there.columns))
    chosen = [method for method in count.index if count[method] >= SHARE * count.max()]
    while chosen and not there[chosen].all(axis=1).any():
        chosen.remove(min(chosen, key=lambda method: count[method]))
    cells = there.index[there[chosen].all(axis=1)]
    inside = pd.MultiIndex.from_frame(results.rows[CELL]).isin(cells)
    rows = results.rows[inside & results.rows["method"].isin(chosen)]
    return rows, [method for method in count.index if method not in chosen]


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Ranks of all methods where all have a score: problem, seed and n down, methods across."""
    chosen = scores(rows).dropna()[order_methods(rows["method"])]
    return chosen.rank(axis=1, ascending=False)


def average_ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """Columns `mean, standard_error` for each method of common rows, best first, at their end."""
    ranks = ranked(rows).groupby(level=CELL).tail(1)
    if rows["problem"].nunique() > 1:
        ranks = ranks.groupby(level="problem").mean()
    found = pd.DataFrame({"mean": ranks.mean(), "standard_error": ranks.sem()})
    return found.sort_values("mean", kind="stable").rename_axis("method").reset_index()
