"""Curves: the mean over seeds, or tasks, of what a method has reached after n observations.

They are rows of `panel, method, iteration, mean, standard_error, samples`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from amortes.bench.report.names import (
    METRICS,
    facts,
    label_of,
    metric_of,
    order_methods,
    panel_label,
)
from amortes.bench.report.style import Look, legend, look, tidy

NO_CURVES = pd.DataFrame(
    {"panel": "", "method": "", "iteration": 0, "mean": 0.0, "standard_error": 0.0, "samples": 0.0},
    index=[0],
)[:0]
START = 0.2
"""Axes of accuracies begin at the lowest curve at this share of the way: what happens before
would leave no room for the differences that count."""
LOWEST = 1e-3
"""Logarithmic axes go no further: a mean of zero would have no place on them."""
MOST_BANDS = 8
"""More methods in a panel are drawn without bands, which would hide the lines."""


def average(rows: pd.DataFrame, keys: Sequence[str], column: str) -> pd.DataFrame:
    """Mean and standard error of a column where at least half of its series go on."""
    groups = rows.dropna(subset=[column]).groupby([*keys, "iteration"], sort=False)[column]
    found = groups.agg(mean="mean", standard_error="sem", samples="count").reset_index()
    most = found.groupby(list(keys))["samples"].transform("max")
    return found[2 * found["samples"] >= most]


def problem_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """A curve for each problem and method, in the metric of the problem, where that is known."""
    return average(rows, ["problem", "method"], "metric").rename(columns={"problem": "panel"})


def task_curves(rows: pd.DataFrame, column: str, panel: str) -> pd.DataFrame:
    """Means over the seeds of each problem, then over problems, for the n that all of these have.

    Standard errors are over problems, or over seeds if there is but one.
    """
    tasks = rows["problem"].nunique()
    if tasks > 1:
        rows, column = average(rows, ["method", "problem"], column), "mean"
    found = average(rows, ["method"], column).assign(panel=panel)[list(NO_CURVES)]
    return found if tasks == 1 else found[found["samples"] == tasks]


def joined(curves: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Curves and those published of the same panels, panel by panel."""
    panels = {panel: place for place, panel in enumerate(curves["panel"].unique())}
    both = pd.concat([curves, published[published["panel"].isin(panels)]], ignore_index=True)
    return both.sort_values("panel", key=lambda names: names.map(panels), kind="stable")


def overview(curves: pd.DataFrame, *models: str) -> pd.DataFrame:
    """Ours and what people use today, which fit into one figure, and those of other models."""
    known = facts(curves["method"])
    baseline = known["model"].isin(["other", *models]) | (curves["method"] == "map-logei")
    return curves[known["is_ours"] | baseline]


def titled(curves: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The curves of each panel with its title."""
    return [(panel_label(str(name)), found) for name, found in curves.groupby("panel", sort=False)]


def draw_panels(
    cells: Sequence[tuple[str, pd.DataFrame]],
    ylabel: str = "",
    *,
    across: int = 3,
    share: bool = False,
    log: bool = False,
    looks: Callable[[str], Look] = look,
    labels: Callable[[str], str] = label_of,
) -> Figure:
    """Axes row by row, each with a title and curves, and one legend.

    Without a label they show the metric of their problem. `share` is for rows of the same problem,
    which have the same axes.
    """
    every = pd.concat([curves for _, curves in cells])
    metric = metric_of(every["panel"].iloc[0])
    zoom = not ylabel and metric != "regret"
    across = min(across, len(cells))
    down = math.ceil(len(cells) / across)
    shared: Literal["row", "none"] = "row" if share else "none"
    figure = Figure(figsize=(11.0, 2.8 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharex=shared, sharey=shared)
    for i, ax in enumerate(axes.flat):
        title, curves = cells[i] if i < len(cells) else ("", every[:0])
        ax.set_visible(bool(title))
        ax.set_title(title)
        ax.set_ylabel((ylabel or METRICS[metric]) if i % across == 0 else "")
        ax.set_xlabel("observations" if i + across >= len(cells) else "")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        tidy(ax)
        _draw_curves(ax, curves, looks)
        if log and len(curves):
            _make_logarithmic(ax, curves["mean"])
        if zoom and len(curves):
            _zoom_in(ax, every[every["panel"].isin(curves["panel"])])
    shown: dict[str, Look] = {}
    for name in order_methods(every["method"]):
        shown.setdefault(labels(name), looks(name))
    legend(figure, shown)
    return figure


def _draw_curves(ax: Axes, curves: pd.DataFrame, looks: Callable[[str], Look]) -> None:
    """Means, and for what was run here bands of one standard error."""
    methods = order_methods(curves["method"])
    here = [name for name in methods if not name.startswith("paper:")]
    for method in methods:
        style, curve = looks(method), curves[curves["method"] == method]
        n, mean, error = (curve[c] for c in ("iteration", "mean", "standard_error"))
        ax.plot(n, mean, markevery=max(1, len(curve) // 6), **style)
        if method in here and len(here) <= MOST_BANDS and error.notna().any():
            ax.fill_between(n, mean - error, mean + error, color=style["color"], alpha=0.15, lw=0)


def _make_logarithmic(ax: Axes, means: "pd.Series[float]") -> None:
    ax.set_yscale("log")
    lowest, highest = means[means > 0].min(), means.max()
    ax.set_ylim(max(LOWEST, 0.7 * lowest), 1.4 * max(LOWEST, highest))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _zoom_in(ax: Axes, curves: pd.DataFrame) -> None:
    """Let the axis begin at the lowest curve at START of the way."""
    early = curves.groupby("method")["mean"].agg(
        lambda mean: mean.iloc[int(START * (len(mean) - 1))]
    )
    bottom, top = early.min(), curves["mean"].max()
    if bottom < top:
        ax.set_ylim(bottom, top + 0.06 * (top - bottom))
