"""Figures of comparisons: win rates, ranks and runtimes."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from amortes.bench.report.names import parse_method, versus
from amortes.bench.report.style import LIGHT, legend, look, tidy
from amortes.bench.report.text import counted, seconds

CELL_INK = "#101010"  # on cells whose colours are the same in both themes
DIVERGING = LinearSegmentedColormap.from_list("wins", ["#f2a97c", "#f7f5f2", "#86bfe4"])


def draw_wins(wins: pd.DataFrame, published: Mapping[tuple[str, str], float]) -> Figure:
    """A column per group of problems, a row per pair (ours, GP); hollow: as published.

    `wins` has rows of `group, ours, theirs, rate, low, high`; `published` the win rate over the
    fully Bayesian GP by group and `Method.column`.
    """
    pairs = list(dict.fromkeys(zip(wins["ours"], wins["theirs"], strict=True)))
    groups = list(dict.fromkeys(wins["group"]))
    figure = Figure(figsize=(11.0, 0.34 * len(pairs) + 1.5), layout="constrained")
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for ax, group in zip(axes, groups, strict=True):
        ax.axvline(0.5, color=LIGHT["grey"], lw=1.0)
        found = wins[wins["group"] == group].set_index(["ours", "theirs"])
        for row, pair in enumerate(pairs):
            style = look(pair[0])
            if pair in found.index:
                rate, low, high = found.loc[pair, ["rate", "low", "high"]]
                ax.plot([low, high], [row, row], color=style.colour, lw=2.0, clip_on=False)
                ax.plot(rate, row, marker=style.marker, color=style.colour, ms=6.5, clip_on=False)
            was = published.get((group, parse_method(pair[0]).column))
            if was is not None and parse_method(pair[1]).model == "fb":
                ax.plot(was, row + 0.25, "o", mfc="none", mec=LIGHT["ink"], ms=5.0)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        ax.set_xlabel("win rate")
        ax.set_title(_wrapped(group))
        tidy(ax)
    axes[0].set_yticks(range(len(pairs)), [versus(*pair) for pair in pairs])
    axes[0].set_ylim(len(pairs) - 0.5, -0.5)
    handles = [
        Line2D([], [], color=LIGHT["grey"], marker="o", lw=2.0),
        Line2D([], [], color=LIGHT["ink"], marker="o", mfc="none", lw=0),
    ]
    legend(figure, handles, ["amortes, 95% interval", "published, α-PFN over fully Bayesian GP"], 2)
    return figure


def draw_matrix(methods: Sequence[str], rates: pd.DataFrame) -> Figure:
    """Win rates of `ours` (rows) over `theirs` (columns); no cell where they share no run."""
    labels = [parse_method(method).label for method in methods]
    side = 0.52 * len(methods)
    figure = Figure(figsize=(max(6.0, side + 3.2), max(4.0, side + 2.4)), layout="constrained")
    ax = figure.subplots()
    for ours, theirs, rate in rates[["ours", "theirs", "rate"]].itertuples(index=False):
        x, y = methods.index(theirs), methods.index(ours)
        ax.add_patch(Rectangle((x + 0.02, y + 0.02), 0.96, 0.96, color=DIVERGING(rate), lw=0))
        text = ax.text(x + 0.5, y + 0.5, f"{100 * rate:.0f}", fontsize=8, color=CELL_INK)
        text.set(ha="center", va="center")
    places = np.arange(len(methods)) + 0.5
    ax.set_xticks(places, labels, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(places, labels)
    ax.set_title("wins of the row over the column, % of (problem, seed) pairs", pad=12)
    ax.set_aspect("equal")
    ax.set_xlim(0, len(methods))
    ax.set_ylim(len(methods), 0)
    tidy(ax)
    ax.grid(visible=False)
    ax.xaxis.tick_top()
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    return figure


def draw_ranks(ranks: pd.DataFrame) -> Figure:
    """Average ranks with standard errors, a column per group of problems.

    `ranks` has rows of `group, method, rank, standard_error, methods, tasks`, best first. Methods
    are in the order of the last group, then of the others.
    """
    groups = list(dict.fromkeys(ranks["group"]))
    methods = list(
        dict.fromkeys(m for group in groups[::-1] for m in ranks["method"][ranks["group"] == group])
    )
    figure = Figure(figsize=(11.0, 0.3 * len(methods) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for ax, group in zip(axes, groups, strict=True):
        found = ranks[ranks["group"] == group]
        for method, rank, error in found[["method", "rank", "standard_error"]].itertuples(
            index=False
        ):
            style = look(method)
            ax.errorbar(
                rank,
                methods.index(method),
                xerr=np.nan_to_num(error),
                fmt=style.marker or "o",
                color=style.colour,
                mfc="none" if style.hollow else style.colour,
                ms=6,
                lw=1.8,
            )
        tasks = counted(int(found["tasks"].iloc[0]), "task")
        ax.set_title(f"{_wrapped(group)}\n{len(found)} methods, {tasks}")
        ax.set_xlabel("average rank")
        ax.set_xlim(0.5, len(found) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        tidy(ax)
    axes[0].set_yticks(range(len(methods)), [parse_method(method).label for method in methods])
    axes[0].set_ylim(len(methods) - 0.5, -0.5)
    return figure


def draw_runtime(times: pd.DataFrame) -> Figure:
    """Seconds from new data to a suggestion: a row per method, a dot per panel, on a log axis."""
    totals = times.groupby("method", sort=False)["total"]
    typical = totals.agg(lambda total: np.exp(np.log(total).mean())).sort_values(kind="stable")
    figure = Figure(figsize=(9.0, 0.3 * len(typical) + 1.2), layout="constrained")
    ax = figure.subplots()
    for row, (method, mean) in enumerate(typical.items()):
        colour, total = look(str(method)).colour, totals.get_group(method)
        ax.plot(total, [row] * len(total), "o", color=colour, alpha=0.35, ms=5, mew=0)
        ax.plot(mean, row, "|", color=colour, ms=16, mew=2.5)
        ax.annotate(
            f"{seconds(mean)} s",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=LIGHT["ink"],
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_yticks(range(len(typical)), [parse_method(str(m)).label for m in typical.index])
    ax.set_ylim(len(typical) - 0.5, -0.5)
    ax.set_xlabel("seconds per suggestion (fit + search); bar and number: geometric mean")
    tidy(ax)
    return figure


def _wrapped(title: str) -> str:
    return textwrap.fill(title, 16)
