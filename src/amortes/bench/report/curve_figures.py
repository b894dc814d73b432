"""Figures of curves: one panel per problem, or a grid of problems and acquisitions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from amortes.bench.report.curves import LABELS, Curve, Curves
from amortes.bench.report.names import (
    ACQUISITIONS,
    COLUMNS,
    MODELS,
    PLAIN_NOISE,
    noise_of,
    order_methods,
    panel_label,
    parse_method,
)
from amortes.bench.report.style import DASHED, LIGHT, OURS, Look, legend, look, tidy
from amortes.bench.report.tables import Table

ACROSS = 3
START = 0.2
"""Axes of accuracies begin at the lowest curve at this share of the way: what happens before
would leave no room for the differences that count."""
VARIANTS = ("blue", "vermillion", "green", "amber", "purple")
LOWEST = 1e-3
"""Logarithmic axes go no further: a mean of zero would have no place on them."""
MOST_BANDS = 8
"""More methods in a panel are drawn without bands, which would hide the lines."""
GP_MODELS = ("ours", "fb", "map", "paper", "paper:fb")


def draw_curve(ax: Axes, name: str, curve: Curve, style: Look | None = None) -> None:
    """A mean with a band of one standard error."""
    style = style or look(name)
    every = max(1, len(curve.iteration) // 6)
    ax.plot(
        curve.iteration,
        curve.mean,
        markevery=every,
        label=parse_method(name).label,
        **style.options(),
    )
    if style.band and not np.isnan(curve.error).all():
        low, high = curve.mean - curve.error, curve.mean + curve.error
        ax.fill_between(curve.iteration, low, high, color=style.colour, alpha=0.15, lw=0)


def draw_panels(
    curves: Mapping[str, Mapping[str, Curve]],
    *,
    ylabel: str,
    zoom: bool = False,
    log: bool = False,
    looks: Callable[[str], Look] = look,
) -> Figure:
    """One panel per entry of `curves`, all methods in it, one legend."""
    across = min(ACROSS, len(curves))
    down = math.ceil(len(curves) / across)
    figure = Figure(figsize=(11.0, 2.9 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for ax, (name, methods) in zip(axes.flat, curves.items(), strict=False):
        for method in order_methods(methods):
            style = looks(method)
            band = style.band and len(methods) <= MOST_BANDS
            draw_curve(ax, method, methods[method], replace(style, band=band))
        ax.set_title(panel_label(name))
        if log:
            _make_logarithmic(ax, methods.values())
        if zoom:
            zoom_in(ax, methods.values())
        tidy(ax)
    for ax in axes.flat[len(curves) :]:
        ax.set_visible(False)
    _outer_labels(axes, len(curves), across, ylabel)
    _legend_of(figure, [method for methods in curves.values() for method in methods], looks)
    return figure


def draw_grid(curves: Curves, published: Curves, *, ylabel: str, zoom: bool = False) -> Figure:
    """Problems down, acquisitions that were run across: ours, the GPs, and what was published.

    At least one of the `curves` must be of a method that is `in_grid`.
    """
    there = {parse_method(m).column for methods in curves.values() for m in methods if in_grid(m)}
    columns = [column for column in COLUMNS if column in there]
    chosen = drop_empty(
        {
            problem: {
                method: curve
                for method, curve in {**curves[problem], **published.get(problem, {})}.items()
                if in_grid(method) and parse_method(method).column in columns
            }
            for problem in curves
        }
    )
    figure, axes = _lattice(list(chosen), columns, ylabel)
    for (problem, column), ax in axes.items():
        methods = chosen[problem]
        for method in order_methods(m for m in methods if parse_method(m).column == column):
            draw_curve(ax, method, methods[method])
        if zoom:
            zoom_in(ax, methods.values())
    handles, labels = model_handles(name for methods in chosen.values() for name in methods)
    legend(figure, handles, labels, 5)
    return figure


def in_grid(name: str) -> bool:
    """Whether a method has a place in a grid: an acquisition of ours (default weights) or a GP."""
    method = parse_method(name)
    return method.model in GP_MODELS and bool(method.column) and not method.weights


def drop_empty(curves: Curves) -> Curves:
    """The curves without the problems that have none."""
    return {problem: methods for problem, methods in curves.items() if methods}


def draw_noise(curves: Curves, published: Curves, levels: Mapping[str, Sequence[str]]) -> Figure:
    """Noise levels down, problems across: ours, and dashed what was published.

    `levels` has, for each problem, its names from the least to the most noise.
    """
    down = max(len(names) for names in levels.values())
    figure = Figure(figsize=(11.0, 2.7 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, len(levels), squeeze=False, sharex="col", sharey="col")
    drawn: list[str] = []
    for column, names in zip(axes.T, levels.values(), strict=True):
        for ax, problem in zip(column, names, strict=False):
            shown = {
                method: curve
                for method, curve in {**curves[problem], **published.get(problem, {})}.items()
                if parse_method(method).model in ("ours", "paper")
                and not parse_method(method).weights
            }
            for method in order_methods(shown):
                draw_curve(ax, method, shown[method])
            drawn += shown
            plain = noise_of(problem)[1] is None
            ax.set_title(panel_label(problem) + (f", noise {PLAIN_NOISE}" if plain else ""))
        for ax in column:
            tidy(ax)
        for ax in column[len(names) :]:
            ax.set_visible(False)
        column[len(names) - 1].set_xlabel("observations")
    for ax in axes[:, 0]:
        ax.set_ylabel(LABELS["regret"])
    _legend_of(figure, drawn)
    return figure


def draw_variants(curves: Curves, published: Curves, *, ylabel: str, plain: str) -> Figure:
    """Problems down, acquisitions across: the default weights and others, dashed as published.

    `plain` is what the legend calls methods that name no weights.
    """
    both = {problem: {**curves[problem], **published.get(problem, {})} for problem in curves}
    parsed = {name: parse_method(name) for methods in both.values() for name in methods}
    columns = [c for c in ACQUISITIONS if any(parsed[n].acquisition == c for n in parsed)]
    weights = list(dict.fromkeys(method.weights for method in parsed.values()))
    colours = {name: LIGHT[VARIANTS[i % len(VARIANTS)]] for i, name in enumerate(sorted(weights))}
    figure, axes = _lattice(list(both), columns, ylabel)
    handles: dict[str, Line2D] = {}
    for (problem, column), ax in axes.items():
        methods = both[problem]
        for name in order_methods(n for n in methods if parsed[n].acquisition == column):
            dashed = parsed[name].model == "paper"
            style = Look(
                colour=colours[parsed[name].weights],
                line=DASHED if dashed else "-",
                band=not dashed,
            )
            draw_curve(ax, name, methods[name], style)
            label = f"{MODELS[parsed[name].model]}, {parsed[name].weights_label or plain}"
            handles.setdefault(label, Line2D([], [], **style.options()))
    legend(figure, list(handles.values()), list(handles), 4)
    return figure


def zoom_in(ax: Axes, curves: Iterable[Curve]) -> None:
    """Let the axis begin at the lowest curve at START of the way."""
    means, highest = [], []
    for curve in curves:
        means.append(curve.mean[int(START * (len(curve.mean) - 1))])
        highest.append(np.nanmax(curve.mean))
    bottom, top = float(np.nanmin(means)), float(np.nanmax(highest))
    if bottom < top:
        ax.set_ylim(bottom, top + 0.06 * (top - bottom))


def model_handles(names: Iterable[str]) -> tuple[list[Line2D], list[str]]:
    """A legend of models rather than methods, for figures with a column per acquisition."""
    parsed = [parse_method(name) for name in order_methods(names)]
    handles, labels = [], []
    for model in dict.fromkeys(method.model for method in parsed):
        style = look(next(method.name for method in parsed if method.model == model))
        if model in ("ours", "paper"):
            # Networks have the colour of their column.
            columns = dict.fromkeys(m.acquisition for m in parsed if m.model == model)
            for acquisition in columns:
                handles.append(
                    Line2D(
                        [],
                        [],
                        color=LIGHT[OURS[acquisition]],
                        lw=style.width,
                        ls="-" if model == "ours" else DASHED,
                    )
                )
                labels.append(f"{MODELS[model]} {ACQUISITIONS[acquisition]}")
            continue
        handles.append(Line2D([], [], color=style.colour, lw=style.width, ls=style.line))
        labels.append(MODELS[model])
    return handles, labels


def curve_table(name: str, title: str, curves: Mapping[str, Mapping[str, Curve]]) -> Table:
    """All numbers of a figure, for download."""

    def number(value: float) -> str:
        return "" if np.isnan(value) else f"{value:.6g}"

    return Table(
        name=name,
        title=title,
        columns=["panel", "method", "iteration", "mean", "standard_error", "samples"],
        rows=[
            [panel, method, str(i), number(mean), number(error), number(count)]
            for panel, methods in curves.items()
            for method, c in methods.items()
            for i, mean, error, count in zip(c.iteration, c.mean, c.error, c.count, strict=True)
        ],
    )


def _lattice(
    problems: Sequence[str], columns: Sequence[str], ylabel: str
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Axes for each problem (down) and acquisition (across); those of a single one go on below."""
    several = len(columns) > 1
    cells = [(problem, column) for problem in problems for column in columns]
    across = len(columns) if several else min(ACROSS, len(cells))
    down = math.ceil(len(cells) / across)
    figure = Figure(figsize=(11.0, (2.1 if several else 2.7) * down + 1.1), layout="constrained")
    share: Literal["row", False] = "row" if several else False
    axes = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share)
    _outer_labels(axes, len(cells), across, ylabel)
    for i, (ax, (problem, column)) in enumerate(zip(axes.flat, cells, strict=False)):
        if not several:
            ax.set_title(f"{panel_label(problem)}: {ACQUISITIONS[column]}")
        elif i < across:
            ax.set_title(ACQUISITIONS[column])
        if several and i % across == 0:
            ax.set_ylabel(f"{panel_label(problem)}\n{ylabel}")
        tidy(ax)
    for ax in axes.flat[len(cells) :]:
        ax.set_visible(False)
    return figure, dict(zip(cells, axes.flat, strict=False))


def _make_logarithmic(ax: Axes, curves: Iterable[Curve]) -> None:
    ax.set_yscale("log")
    means = np.concatenate([curve.mean for curve in curves])
    lowest, highest = np.min(means[means > 0], initial=1.0), np.max(means, initial=LOWEST)
    ax.set_ylim(max(LOWEST, 0.7 * lowest), 1.4 * highest)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _outer_labels(axes: np.ndarray, count: int, across: int, ylabel: str) -> None:
    for i, ax in enumerate(axes.flat[:count]):
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if i % across == 0:
            ax.set_ylabel(ylabel)
        if i + across >= count:
            ax.set_xlabel("observations")


def _legend_of(figure: Figure, names: Iterable[str], looks: Callable[[str], Look] = look) -> None:
    ordered = order_methods(names)
    handles = [Line2D([], [], **looks(name).options()) for name in ordered]
    legend(figure, handles, [parse_method(name).label for name in ordered], 4)
