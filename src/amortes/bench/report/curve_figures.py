"""Figures of curves: one panel per problem, or a grid of problems and acquisitions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from amortes.bench.problems.synthetic import NOISE_SD
from amortes.bench.report.curves import of_methods
from amortes.bench.report.names import (
    ACQUISITIONS,
    METRIC_LABELS,
    MODELS,
    noise_of,
    order_methods,
    panel_label,
    parse_method,
)
from amortes.bench.report.style import DASHED, LIGHT, Look, legend, look, tidy

ACROSS = 3
START = 0.2
"""Axes of accuracies begin at the lowest curve at this share of the way: what happens before
would leave no room for the differences that count."""
VARIANTS = ("blue", "vermillion", "green", "amber", "purple")
LOWEST = 1e-3
"""Logarithmic axes go no further: a mean of zero would have no place on them."""
MOST_BANDS = 8
"""More methods in a panel are drawn without bands, which would hide the lines."""


def draw_curves(
    ax: Axes, curves: pd.DataFrame, looks: Callable[[str], Look] = look, *, bands: bool = True
) -> None:
    """The methods of a panel in order: means with bands of one standard error."""
    for method in order_methods(curves["method"]):
        style, curve = looks(method), curves[curves["method"] == method]
        n, mean, error = (curve[c] for c in ("iteration", "mean", "standard_error"))
        every = max(1, len(curve) // 6)
        label = parse_method(method).label
        ax.plot(n, mean, markevery=every, label=label, **style.options())
        if style.band and bands and error.notna().any():
            ax.fill_between(n, mean - error, mean + error, color=style.colour, alpha=0.15, lw=0)


def draw_panels(
    curves: pd.DataFrame,
    *,
    ylabel: str,
    zoom: bool = False,
    log: bool = False,
    looks: Callable[[str], Look] = look,
) -> Figure:
    """One panel after the other, all methods in it, one legend."""
    panels = list(dict.fromkeys(curves["panel"]))
    across = min(ACROSS, len(panels))
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(11.0, 2.9 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for ax, name in zip(axes.flat, panels, strict=False):
        shown = curves[curves["panel"] == name]
        draw_curves(ax, shown, looks, bands=shown["method"].nunique() <= MOST_BANDS)
        ax.set_title(panel_label(name))
        if log:
            _make_logarithmic(ax, shown["mean"].to_numpy())
        if zoom:
            zoom_in(ax, shown)
        tidy(ax)
    _outer_labels(axes, len(panels), across, ylabel)
    _legend_of(figure, curves["method"], looks)
    return figure


def draw_grid(curves: pd.DataFrame, *, ylabel: str, zoom: bool = False) -> Figure:
    """Problems down, acquisitions that were run across: ours, the GPs, and what was published.

    At least one of the `curves` must be of a method that is `in_grid`.
    """
    curves = of_methods(curves, in_grid)
    run = curves["method"][~curves["method"].str.startswith("paper:")]
    columns = {parse_method(name).column for name in run}
    curves = of_methods(curves, lambda name: parse_method(name).column in columns)
    handles: dict[str, Line2D] = {}
    for name in order_methods(curves["method"]):
        method, style = parse_method(name), look(name)
        label = MODELS[method.model]
        if method.model in ("ours", "paper"):  # networks have the colour of their column
            label = method.label
        options = {"color": style.colour, "lw": style.width, "ls": style.line}
        handles.setdefault(label, Line2D([], [], **options))
    return _draw_lattice(curves, "column", look, handles, ylabel=ylabel, zoom=zoom)


def in_grid(name: str) -> bool:
    """Whether a method has a place in a grid: an acquisition of ours (default weights) or a GP."""
    method = parse_method(name)
    return bool(method.column) and not method.weights


def draw_variants(curves: pd.DataFrame, *, ylabel: str, plain: str) -> Figure:
    """Problems down, acquisitions across: the default weights and others, dashed as published.

    `plain` is what the legend calls methods that name no weights.
    """
    weights = sorted({parse_method(name).weights for name in curves["method"]})
    colours = {name: LIGHT[VARIANTS[i % len(VARIANTS)]] for i, name in enumerate(weights)}

    def variant(name: str) -> Look:
        dashed = parse_method(name).model == "paper"
        colour = colours[parse_method(name).weights]
        return Look(colour=colour, line=DASHED if dashed else "-", band=not dashed)

    handles: dict[str, Line2D] = {}
    for name in order_methods(curves["method"]):
        label = f"{MODELS[parse_method(name).model]}, {parse_method(name).weights or plain}"
        handles.setdefault(label, Line2D([], [], **variant(name).options()))
    return _draw_lattice(curves, "acquisition", variant, handles, ylabel=ylabel)


def draw_noise(curves: pd.DataFrame, levels: Mapping[str, Sequence[str]]) -> Figure:
    """Noise levels down, problems across: ours, and dashed what was published.

    `levels` has, for each problem, its names from the least to the most noise.
    """
    curves = of_methods(
        curves,
        lambda name: (
            parse_method(name).model in ("ours", "paper") and not parse_method(name).weights
        ),
    )
    down = max(len(names) for names in levels.values())
    figure = Figure(figsize=(11.0, 2.7 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, len(levels), squeeze=False, sharex="col", sharey="col")
    for column, names in zip(axes.T, levels.values(), strict=True):
        for ax, problem in zip(column, names, strict=False):
            draw_curves(ax, curves[curves["panel"] == problem])
            plain = noise_of(problem)[1] is None
            ax.set_title(panel_label(problem) + (f", noise {NOISE_SD}" if plain else ""))
        for ax in column:
            tidy(ax)
        for ax in column[len(names) :]:
            ax.set_visible(False)
        column[len(names) - 1].set_xlabel("observations")
    for ax in axes[:, 0]:
        ax.set_ylabel(METRIC_LABELS["regret"])
    _legend_of(figure, curves["method"])
    return figure


def zoom_in(ax: Axes, curves: pd.DataFrame) -> None:
    """Let the axis begin at the lowest curve at START of the way."""
    means = [curve.to_numpy() for _, curve in curves.groupby("method")["mean"]]
    bottom = float(np.nanmin([mean[int(START * (len(mean) - 1))] for mean in means]))
    top = float(curves["mean"].max())
    if bottom < top:
        ax.set_ylim(bottom, top + 0.06 * (top - bottom))


def _draw_lattice(
    curves: pd.DataFrame,
    across_by: Literal["column", "acquisition"],
    looks: Callable[[str], Look],
    handles: Mapping[str, Line2D],
    *,
    ylabel: str,
    zoom: bool = False,
) -> Figure:
    """Panels down and acquisitions across; the panels of a single acquisition go on below."""
    column_of = curves["method"].map(lambda name: getattr(parse_method(name), across_by))
    panels = list(dict.fromkeys(curves["panel"]))
    columns = [name for name in ACQUISITIONS if name in set(column_of)]
    several = len(columns) > 1
    cells = [(panel, column) for panel in panels for column in columns]
    across = len(columns) if several else min(ACROSS, len(cells))
    down = math.ceil(len(cells) / across)
    figure = Figure(figsize=(11.0, (2.1 if several else 2.7) * down + 1.1), layout="constrained")
    share: Literal["row", False] = "row" if several else False
    axes = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share)
    _outer_labels(axes, len(cells), across, ylabel)
    for i, (ax, (panel, column)) in enumerate(zip(axes.flat, cells, strict=False)):
        if not several:
            ax.set_title(f"{panel_label(panel)}: {ACQUISITIONS[column]}")
        elif i < across:
            ax.set_title(ACQUISITIONS[column])
        if several and i % across == 0:
            ax.set_ylabel(f"{panel_label(panel)}\n{ylabel}")
        tidy(ax)
        shown = curves["panel"] == panel
        draw_curves(ax, curves[shown & (column_of == column)], looks)
        if zoom:
            zoom_in(ax, curves[shown])
    legend(figure, list(handles.values()), list(handles), 5 if across_by == "column" else 4)
    return figure


def _make_logarithmic(ax: Axes, means: np.ndarray) -> None:
    ax.set_yscale("log")
    lowest, highest = np.min(means[means > 0], initial=1.0), np.max(means, initial=LOWEST)
    ax.set_ylim(max(LOWEST, 0.7 * lowest), 1.4 * highest)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _outer_labels(axes: np.ndarray, count: int, across: int, ylabel: str) -> None:
    """Label the axes at the border; those beyond `count` are empty and vanish."""
    for i, ax in enumerate(axes.flat):
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.set_visible(i < count)
        if i % across == 0:
            ax.set_ylabel(ylabel)
        if i < count <= i + across:
            ax.set_xlabel("observations")


def _legend_of(figure: Figure, names: Iterable[str], looks: Callable[[str], Look] = look) -> None:
    ordered = order_methods(names)
    handles = [Line2D([], [], **looks(name).options()) for name in ordered]
    legend(figure, handles, [parse_method(name).label for name in ordered], 4)
