"""Figures of comparisons: win rates, ranks and runtimes."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from amortes.bench.report.names import parse_method, versus
from amortes.bench.report.ranks import Ranks
from amortes.bench.report.results import Floats
from amortes.bench.report.runtime import Timing
from amortes.bench.report.style import LIGHT, legend, look, tidy
from amortes.bench.report.tables import counted, seconds
from amortes.bench.report.wins import Wins

CELL_INK = "#101010"  # on cells whose colours are the same in both themes
DIVERGING = LinearSegmentedColormap.from_list("wins", ["#f2a97c", "#f7f5f2", "#86bfe4"])
Pair = tuple[str, str]


def draw_wins(
    rates: Mapping[str, Mapping[Pair, Wins]], published: Mapping[str, Mapping[str, float]]
) -> Figure:
    """A column per group of problems, a row per pair (ours, GP); hollow: as published.

    `published` has, for each group, the win rate over the fully Bayesian GP by `Method.column`.
    """
    pairs = list(dict.fromkeys(pair for group in rates.values() for pair in group))
    figure = Figure(figsize=(11.0, 0.34 * len(pairs) + 1.5), layout="constrained")
    axes = figure.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    for ax, (group, found) in zip(axes, rates.items(), strict=True):
        ax.axvline(0.5, color=LIGHT["grey"], lw=1.0)
        for row, pair in enumerate(pairs):
            style = look(pair[0])
            wins = found.get(pair)
            if wins is not None and wins.n:
                low, high = wins.interval
                ax.plot([low, high], [row, row], color=style.colour, lw=2.0, clip_on=False)
                ax.plot(
                    wins.rate, row, marker=style.marker, color=style.colour, ms=6.5, clip_on=False
                )
            was = published.get(group, {}).get(parse_method(pair[0]).column)
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


def draw_matrix(methods: Sequence[str], rate: Floats) -> Figure:
    """Win rates of rows over columns, `m x m`; NaN where two methods share no run."""
    labels = [parse_method(method).label for method in methods]
    side = 0.52 * len(methods)
    figure = Figure(figsize=(max(6.0, side + 3.2), max(4.0, side + 2.4)), layout="constrained")
    ax = figure.subplots()
    for (i, j), value in np.ndenumerate(rate):
        if not np.isnan(value):
            cell = Rectangle((j + 0.02, i + 0.02), 0.96, 0.96, color=DIVERGING(value), lw=0)
            ax.add_patch(cell)
            ax.text(
                j + 0.5,
                i + 0.5,
                f"{100 * value:.0f}",
                ha="center",
                va="center",
                fontsize=8,
                color=CELL_INK,
            )
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


def draw_ranks(ranks: Mapping[str, Ranks]) -> Figure:
    """Average rank with its standard error, a column per group of problems.

    Methods are in the order of the last group, then of the others.
    """
    methods = list(dict.fromkeys(m for one in list(ranks.values())[::-1] for m in one.mean))
    figure = Figure(figsize=(11.0, 0.3 * len(methods) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(ranks), sharey=True, squeeze=False)[0]
    for ax, (group, one) in zip(axes, ranks.items(), strict=True):
        for method, mean in one.mean.items():
            style = look(method)
            ax.errorbar(
                mean,
                methods.index(method),
                xerr=np.nan_to_num(one.error[method]),
                fmt=style.marker or "o",
                color=style.colour,
                mfc="none" if style.hollow else style.colour,
                ms=6,
                lw=1.8,
            )
        tasks = len({problem for problem, _ in one.field.cells})
        ax.set_title(f"{_wrapped(group)}\n{len(one.mean)} methods, {counted(tasks, 'task')}")
        ax.set_xlabel("average rank")
        ax.set_xlim(0.5, len(one.mean) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        tidy(ax)
    axes[0].set_yticks(range(len(methods)), [parse_method(method).label for method in methods])
    axes[0].set_ylim(len(methods) - 0.5, -0.5)
    return figure


def draw_runtime(times: Mapping[str, Mapping[str, Timing]]) -> Figure:
    """Seconds from new data to a suggestion: a row per method, a dot per panel, on a log axis."""
    order = sorted(times, key=lambda method: _typical(times[method]))
    figure = Figure(figsize=(9.0, 0.3 * len(order) + 1.2), layout="constrained")
    ax = figure.subplots()
    for row, method in enumerate(order):
        style = look(method)
        totals = [timing.total for timing in times[method].values() if timing.total > 0]
        typical = _typical(times[method])
        ax.plot(totals, [row] * len(totals), "o", color=style.colour, alpha=0.35, ms=5, mew=0)
        ax.plot(typical, row, "|", color=style.colour, ms=16, mew=2.5)
        ax.annotate(
            f"{seconds(typical)} s",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=LIGHT["ink"],
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_yticks(range(len(order)), [parse_method(method).label for method in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlabel("seconds per suggestion (fit + search); bar and number: geometric mean")
    tidy(ax)
    return figure


def _typical(times: Mapping[str, Timing]) -> float:
    """Geometric mean of the totals over panels."""
    totals = [timing.total for timing in times.values() if timing.total > 0]
    return float(np.exp(np.mean(np.log(totals)))) if totals else 0.0


def _wrapped(title: str) -> str:
    return textwrap.fill(title, 16)
