"""Who beats whom: win rates, and ranks among methods that were run in the same cells.

A cell is a problem with a seed, where all methods start from the same points. Within it, methods
are compared by the value of what they recommend after as many observations as all of them have.
Ranks (1 is best, ties share the mean of their places) are averaged over the seeds of a problem,
then over problems, so that each task counts once. A rank depends on who else takes part, regret on
the task: only cells where all methods were run are used.

    win rate        mean over pairs of 1 (better), 1/2 (equal), 0 (worse)
    its interval    Wilson, E. B. (1927): Probable inference, JASA 22, 209-212
"""

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from scipy.stats import norm

from amortes.bench.report.names import (
    label_of,
    order_methods,
    panel_label,
    panel_of,
    parse_method,
    same_acquisition,
    versus,
)
from amortes.bench.report.parts import (
    Drawing,
    Part,
    Study,
    Table,
    records,
    section,
    spread,
    text_of,
)
from amortes.bench.report.results import RUN, Results
from amortes.bench.report.style import LIGHT, legend, look, rows_of_dots, tidy
from amortes.bench.report.text import counted

CELL_INK = "#101010"  # on cells whose colours are the same in both themes
DIVERGING = LinearSegmentedColormap.from_list("wins", ["#f2a97c", "#f7f5f2", "#86bfe4"])
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
    for a, b in itertools.combinations(results.methods, 2):
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


def over_gps(wins: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Those of ours (default weights) over the GPs, by `model`, that have the same acquisition."""
    ours = [method for method in methods if parse_method(method).is_ours]
    found = [wins[:0].assign(model="")]
    for model, a in itertools.product(("fb", "map"), ours):
        b = same_acquisition(methods, a, model)
        found.append(wins[(wins["ours"] == a) & (wins["theirs"] == b)].assign(model=model))
    return pd.concat(found)


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


@section(
    "wins",
    "Win rates",
    "Above one half is a win: two methods with the same seed, thus the same initial points, "
    "compared at the end of the shorter run; ties count one half.",
)
def wins(study: Study) -> Iterator[Part]:
    """Ours against GPs, and everyone against everyone."""
    columns = ["rate", "low", "high", "pairs"]
    methods, every = study.results.methods, count_wins(study.results)
    found = over_gps(every, methods)
    if found.empty:
        yield "Ours and a GP with the same acquisition share no run: nothing to compare."
    else:
        data = pd.concat(
            with_rates(found[found["problem"].isin(problems)], PAIR).assign(group=group)
            for group, problems in study.titled_groups.items()
        )[["group", *PAIR, *columns]]
        caption = (
            "Share of the (problem, seed) pairs in which ours recommends the better point; bars "
            "are Wilson's 95% intervals, which take pairs as independent."
        )
        yield Drawing("wins", caption, draw_wins(data, _published_wins(study)), data, "%.4f")
        order = list(study.results.runs["panel"].unique())
        by_panel = with_rates(found.assign(panel=found["problem"].map(panel_of)), ["panel", *PAIR])
        by_panel = by_panel.sort_values("panel", key=lambda p: p.map(order.index), kind="stable")
        cells = {
            "problem": by_panel["panel"].map(panel_label),
            "ours": by_panel["ours"].map(label_of),
            "against": by_panel["theirs"].map(label_of),
            "win rate": [
                f"{one.rate:.2f} [{one.low:.2f}, {one.high:.2f}] ({one.pairs})"
                for one in records(by_panel)
            ],
        }
        title = "Win rate [95% interval] (pairs) of ours over GPs"
        yield Table("wins-table", title, pd.DataFrame(cells))
    if len(methods) > 1:
        rates = with_rates(every, PAIR)
        rates = rates.sort_values(PAIR, key=lambda names: names.map(methods.index))
        caption = (
            "All pairs over all problems that both were run on; blue rows win, and an empty cell "
            "means no common run."
        )
        data = rates[[*PAIR, *columns]].set_axis(["row", "column", *columns], axis=1)
        yield Drawing("win-matrix", caption, draw_matrix(methods, rates), data, "%.4f")


def _published_wins(study: Study) -> dict[tuple[str, str], float]:
    """Last win rate of the alpha-PFN over the GP, averaged over the panels of a group."""
    ends = study.published.wins.groupby(["panel", "method"], as_index=False).tail(1)
    return {
        (group, str(method)): mean
        for group, problems in study.titled_groups.items()
        for method, mean in ends[ends["panel"].isin(map(panel_of, problems))]
        .groupby("method")["mean"]
        .mean()
        .items()
    }


def draw_wins(wins: pd.DataFrame, published: Mapping[tuple[str, str], float]) -> Figure:
    """A column per group of problems, a row per pair (ours, GP); hollow: as published.

    `wins` has rows of `group, ours, theirs, rate, low, high`; `published` the win rate over the
    fully Bayesian GP by group and `Method.column`.
    """
    pairs = list(dict.fromkeys(zip(wins["ours"], wins["theirs"], strict=True)))
    groups = wins["group"].unique()
    figure, axes = rows_of_dots([versus(*pair) for pair in pairs], len(groups))
    for ax, group in zip(axes, groups, strict=True):
        ax.axvline(0.5, color=LIGHT["grey"], lw=1.0)
        for one in records(wins[wins["group"] == group]):
            row, style = pairs.index((one.ours, one.theirs)), look(one.ours)
            line = {"color": style["color"], "clip_on": False}
            ax.plot([one.low, one.high], [row, row], lw=2.0, **line)
            ax.plot(one.rate, row, marker=style["marker"], ms=6.5, **line)
        for row, (ours, theirs) in enumerate(pairs):
            was = published.get((group, parse_method(ours).column))
            if was is not None and parse_method(theirs).model == "fb":
                ax.plot(was, row + 0.25, "o", mfc="none", mec=LIGHT["ink"], ms=5.0)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        ax.set_xlabel("win rate")
        ax.set_title(textwrap.fill(group, 16))
        tidy(ax)
    hollow = {"color": LIGHT["ink"], "marker": "o", "mfc": "none", "lw": 0}
    legend(
        figure,
        {
            "amortes, 95% interval": {"color": LIGHT["grey"], "marker": "o", "lw": 2.0},
            "published, α-PFN over fully Bayesian GP": hollow,
        },
    )
    return figure


def draw_matrix(methods: Sequence[str], rates: pd.DataFrame) -> Figure:
    """Win rates of `ours` (rows) over `theirs` (columns); no cell where they share no run."""
    side = 0.52 * len(methods)
    figure = Figure(figsize=(max(6.0, side + 3.2), max(4.0, side + 2.4)), layout="constrained")
    ax = figure.subplots()
    tidy(ax)
    for one in records(rates):
        x, y = methods.index(one.theirs), methods.index(one.ours)
        ax.add_patch(Rectangle((x + 0.02, y + 0.02), 0.96, 0.96, color=DIVERGING(one.rate), lw=0))
        text = ax.text(x + 0.5, y + 0.5, f"{100 * one.rate:.0f}", fontsize=8, color=CELL_INK)
        text.set(ha="center", va="center")
    labels, places = [*map(label_of, methods)], np.arange(len(methods)) + 0.5
    ax.set_xticks(places, labels, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(places, labels)
    ax.set_title("wins of the row over the column, % of (problem, seed) pairs", pad=12)
    ax.set(aspect="equal", xlim=(0, len(methods)), ylim=(len(methods), 0))
    ax.grid(visible=False)
    ax.xaxis.tick_top()
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return figure


@section(
    "ranks",
    "Average ranks",
    "Lower is better: rank among the methods of a column at the end of the runs, averaged over "
    "seeds and then over tasks, with the standard error over tasks.",
)
def ranks(study: Study) -> Iterator[Part]:
    """Average ranks by group of problems."""
    found, notes = [], []
    for group, problems in study.titled_groups.items():
        rows, left_out = common_rows(study.results, problems)
        count, tasks = rows["method"].nunique(), rows["problem"].nunique()
        if count > 1:
            found.append(average_ranks(rows).assign(group=group, methods=count, tasks=tasks))
            if left_out:
                names = ", ".join(map(label_of, left_out))
                notes.append(f"{group}: not ranked, for too few runs: {names}.")
    if not found:
        yield "No two methods share a run."
        return
    every = pd.concat(found)
    data = every.rename(columns={"mean": "rank"})
    data = data[["group", "method", "rank", "standard_error", "methods", "tasks"]]
    caption = (
        "Average ranks by group of problems; a method without a mark was run too little there."
    )
    yield Drawing("ranks", caption, draw_ranks(data), data, "%.4f")
    heads = every["group"] + " (" + every["methods"].astype(str) + " methods)"
    wide = spread(every.assign(group=heads), ["method"], "group", text_of(every))
    title = "Average rank ± standard error (1 is best)"
    yield Table("ranks-table", title, wide.assign(method=wide["method"].map(label_of)))
    yield from notes


def draw_ranks(ranks: pd.DataFrame) -> Figure:
    """Average ranks with standard errors, a column per group of problems.

    `ranks` has rows of `group, method, rank, standard_error, methods, tasks`, best first. Methods
    are in the order of the last group, then of the others.
    """
    groups = list(ranks["group"].unique())
    last_first = ranks.sort_values("group", key=lambda g: -g.map(groups.index), kind="stable")
    methods = list(last_first["method"].unique())
    figure, axes = rows_of_dots([*map(label_of, methods)], len(groups))
    for ax, group in zip(axes, groups, strict=True):
        found = ranks[ranks["group"] == group]
        for one in records(found):
            style = look(one.method) | {"ms": 6, "lw": 1.8, "ls": "none"}
            error = np.nan_to_num(one.standard_error)
            ax.errorbar(one.rank, methods.index(one.method), xerr=error, **style)
        tasks = counted(found["tasks"].iloc[0], "task")
        ax.set_title(f"{textwrap.fill(group, 16)}\n{len(found)} methods, {tasks}")
        ax.set_xlabel("average rank")
        ax.set_xlim(0.5, len(found) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        tidy(ax)
    return figure
