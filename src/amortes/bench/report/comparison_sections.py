"""Sections that compare methods over many problems: win rates and ranks."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from amortes.bench.report.comparisons import (
    PAIR,
    average_ranks,
    common_rows,
    gp_pairs,
    of_pairs,
    with_rates,
)
from amortes.bench.report.names import label_of, panel_label, panel_of, parse_method, versus
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
from amortes.bench.report.style import LIGHT, legend, look, tidy
from amortes.bench.report.text import counted

CELL_INK = "#101010"  # on cells whose colours are the same in both themes
DIVERGING = LinearSegmentedColormap.from_list("wins", ["#f2a97c", "#f7f5f2", "#86bfe4"])


@section(
    "wins",
    "Win rates",
    "Above one half is a win: two methods with the same seed, thus the same initial points, "
    "compared at the end of the shorter run; ties count one half.",
)
def wins(study: Study) -> Iterator[Part]:
    """Ours against GPs, and everyone against everyone."""
    columns = ["rate", "low", "high", "pairs"]
    found = of_pairs(study.wins, gp_pairs(study.results.methods))
    if len(found):
        rates = [
            with_rates(found[found["problem"].isin(problems)], PAIR).assign(group=group)
            for group, problems in study.titled_groups.items()
        ]
        data = pd.concat(rates)[["group", *PAIR, *columns]]
        caption = (
            "Share of the (problem, seed) pairs in which ours recommends the better point; bars "
            "are Wilson's 95% intervals, which take pairs as independent."
        )
        yield Drawing("wins", caption, draw_wins(data, _published_wins(study)), data, "%.4f")
        panels = pd.Index(map(panel_of, study.results.problems)).unique()
        found = with_rates(found.assign(panel=found["problem"].map(panel_of)), ["panel", *PAIR])
        found = found.sort_values("panel", key=panels.get_indexer_for, kind="stable")
        cells = {
            "problem": found["panel"].map(panel_label),
            "ours": found["ours"].map(label_of),
            "against": found["theirs"].map(label_of),
            "win rate": [
                f"{one.rate:.2f} [{one.low:.2f}, {one.high:.2f}] ({one.pairs})"
                for one in records(found)
            ],
        }
        title = "Win rate [95% interval] (pairs) of ours over GPs"
        yield Table("wins-table", title, pd.DataFrame(cells))
    else:
        yield "Ours and a GP with the same acquisition share no run, so there is nothing to compare."
    if len(methods := study.results.methods) > 1:
        data = with_rates(study.wins, PAIR).sort_values(
            PAIR, key=lambda names: names.map(methods.index)
        )
        caption = (
            "All pairs over all problems that both were run on; blue rows win, and an empty cell "
            "means no common run."
        )
        named = data.rename(columns={"ours": "row", "theirs": "column"})[
            ["row", "column", *columns]
        ]
        yield Drawing("win-matrix", caption, draw_matrix(methods, data), named, "%.4f")


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
    figure, axes = _columns([versus(*pair) for pair in pairs], len(groups), 0.34)
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
    found = []
    for group, problems in study.titled_groups.items():
        rows, left_out = common_rows(study.results, problems)
        count, tasks = rows["method"].nunique(), rows["problem"].nunique()
        if count > 1:
            found.append(average_ranks(rows).assign(group=group, methods=count, tasks=tasks))
            if left_out:
                names = ", ".join(map(label_of, left_out))
                yield f"{group}: not ranked, for too few runs: {names}."
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


def draw_ranks(ranks: pd.DataFrame) -> Figure:
    """Average ranks with standard errors, a column per group of problems.

    `ranks` has rows of `group, method, rank, standard_error, methods, tasks`, best first. Methods
    are in the order of the last group, then of the others.
    """
    groups = list(ranks["group"].unique())
    last_first = ranks.sort_values("group", key=lambda g: -g.map(groups.index), kind="stable")
    methods = list(last_first["method"].unique())
    figure, axes = _columns([*map(label_of, methods)], len(groups), 0.3)
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


def _columns(labels: Sequence[str], count: int, height: float) -> tuple[Figure, Sequence[Axes]]:
    """Axes side by side that share labelled rows, from the top."""
    figure = Figure(figsize=(11.0, height * len(labels) + 1.2), layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].set_ylim(len(labels) - 0.5, -0.5)
    return figure, axes
