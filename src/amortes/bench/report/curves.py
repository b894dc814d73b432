"""Curves: the mean over seeds, or tasks, of what a method has reached after n observations.

They are rows of `panel, method, iteration, mean, standard_error, samples`. The published ones are
those of Rakotoarison et al., "α-PFN: Fast Entropy Search via In-Context Learning" (ICML 2026).
"""

import math
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from amortes.bench.report.names import (
    ACQUISITIONS,
    METRICS,
    facts,
    metric_of,
    order_methods,
    panel_label,
)
from amortes.bench.report.style import Look, look, tidy

SEEDS = 30  # behind each of the published curves
START = 0.2
"""Axes of accuracies begin at the lowest curve at this share of the way: what happens before
would leave no room for the differences that count."""
LOWEST = 1e-3
"""Logarithmic axes go no further: a mean of zero would have no place on them."""
MOST_BANDS = 8
"""More methods in a panel are drawn without bands, which would hide the lines."""


def load_published() -> pd.DataFrame:
    """The curves of the paper, under the names of our results.

    Means and standard errors over seeds, which we read off the coordinates of the vector figures in
    plot_results/ of github.com/automl/AlphaPFN (branch icml2026): measurements of published
    figures, not files of that repository. log10 inference regret to three decimals, accuracy in
    per cent to two.

    Methods are called `paper:jes` (the alpha-PFN), `paper:fb-jes` (its fully Bayesian GP) and
    `paper:jes@uniform` (its trace ablation); why Ackley is `-near`, `problems.synthetic` says.
    """
    with as_file(files("amortes.bench") / "data" / "paper-curves.csv.gz") as path:
        return pd.read_csv(path).assign(samples=float(SEEDS))


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
    found = average(rows, ["method"], column)
    found.insert(0, "panel", panel)
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


def draw_panels(
    curves: pd.DataFrame,
    ylabel: str = "",
    *,
    log: bool = False,
    looks: Callable[[str], Look] = look,
) -> Figure:
    """Axes with the curves of each panel, row by row, and one legend.

    Without a label they show the metric of their problem. If the curves have a `column`, the
    acquisition they belong to, panels are down and acquisitions across, unless there is but one.
    """
    columns = [name for name in ACQUISITIONS if name in set(curves.get("column", ()))]
    cells = [
        (f"{panel_label(str(panel))}\n{ACQUISITIONS[name].label}", found[found["column"] == name])
        if name
        else (panel_label(str(panel)), found)
        for panel, found in curves.groupby("panel", sort=False)
        for name in columns or [""]
    ]
    metric = metric_of(curves["panel"].iloc[0])
    zoom = not ylabel and metric != "regret"
    share = len(columns) > 1
    across = min(len(columns) if share else 3, len(cells))
    down = math.ceil(len(cells) / across)
    shared: Literal["row", "none"] = "row" if share else "none"
    figure = Figure(figsize=(11.0, 2.8 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharex=shared, sharey=shared)
    for i, ax in enumerate(axes.flat):
        title, drawn = cells[i] if i < len(cells) else ("", curves[:0])
        ax.set_visible(bool(title))
        ax.set_title(title)
        ax.set_ylabel((ylabel or METRICS[metric]) if i % across == 0 else "")
        ax.set_xlabel("observations" if i + across >= len(cells) else "")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        tidy(ax)
        _draw_curves(ax, drawn, looks)
        if log and len(drawn):
            _make_logarithmic(ax, drawn["mean"])
        if zoom and len(drawn):
            _zoom_in(ax, curves[curves["panel"].isin(drawn["panel"])])
    lines = {line.get_label(): line for ax in axes.flat for line in ax.lines}
    names = [looks(name)["label"] for name in order_methods(curves["method"])]
    shown = {name: lines[name] for name in names if name in lines}
    figure.legend(
        [*shown.values()],
        [*shown],
        loc="outside lower center",
        ncols=min(4, len(shown)),
        frameon=False,
        fontsize=9,
    )
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
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")


def _zoom_in(ax: Axes, curves: pd.DataFrame) -> None:
    """Let the axis begin at the lowest curve at START of the way."""
    early = curves.groupby("method")["mean"].agg(
        lambda mean: mean.iloc[int(START * (len(mean) - 1))]
    )
    bottom, top = early.min(), curves["mean"].max()
    if bottom < top:
        ax.set_ylim(bottom, top + 0.06 * (top - bottom))
