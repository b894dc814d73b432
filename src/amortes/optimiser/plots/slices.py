"""What the model expects along each parameter, the others held at the recommended config.

On a page of its own, or below the values by trial.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.gridspec import GridSpec, GridSpecFromSubplotSpec

from amortes.optimiser.plots.axis import ParameterAxis, cell_edges
from amortes.optimiser.plots.picture import Picture, dress
from amortes.optimiser.plots.trials import add_convergence, draw_convergence
from amortes.optimiser.plots.view import LEVEL, View, mark_failures

COLUMNS = 4
WIDTH, HEIGHT = 2.75, 2.6
"""Inches of a panel."""
PAGE, TOP = 11.0, 3.2
"""Inches of a page, and of the values by trial on it."""
FAINTEST = 0.12
"""Opacity of results far from the slice."""

Grid = GridSpec | GridSpecFromSubplotSpec


def draw_slices(view: View, names: Sequence[str]) -> Picture:
    """The figure, with a panel for each of the parameters."""
    columns, rows = shape(len(names))
    width = max(columns, 2.6) * WIDTH
    axes = [view.axis(name) for name in names]
    heights = row_heights(axes, width / columns)
    picture = Picture(width, 0.5 + sum(heights), view.style)
    grid = picture.add_gridspec(rows, columns, height_ratios=heights)
    add_slices(picture, grid, view, axes, width / columns)
    picture.legend_above()
    return picture


def draw_page(view: View) -> Picture:
    """The figure; without a model, only the values."""
    if view.fitted is None:
        return draw_convergence(view, PAGE, TOP)
    axes = [view.axis(name) for name in view.names]
    columns, rows = shape(len(axes))
    heights = row_heights(axes, PAGE / columns)
    picture = Picture(PAGE, 0.6 + TOP + sum(heights), view.style)
    outer = picture.add_gridspec(2, 1, height_ratios=[TOP, sum(heights)])
    add_convergence(picture.add_subplot(outer[0]), view)
    inner = outer[1].subgridspec(rows, columns, height_ratios=heights)
    add_slices(picture, inner, view, axes, PAGE / columns)
    picture.legend_above(without="result")  # slices say more
    return picture


def row_heights(axes: Sequence[ParameterAxis], width: float) -> list[float]:
    """Inches of each row of panels this wide: more where labels are turned."""
    columns, rows = shape(len(axes))
    each = [HEIGHT + axis.label_height(width) for axis in axes]
    return [max(each[row * columns : (row + 1) * columns]) for row in range(rows)]


def shape(count: int) -> tuple[int, int]:
    """Columns and rows of so many panels."""
    rows = math.ceil(count / COLUMNS)
    return math.ceil(count / rows), rows


def add_slices(
    picture: Picture, grid: Grid, view: View, axes: Sequence[ParameterAxis], width: float
) -> None:
    """Draw a panel of `width` inches for each parameter."""
    drawn = [_predicted(view, axis) for axis in axes]
    scale = view.scale
    for _, (low, middle, high), _ in drawn:
        scale = scale.including(low, middle, high)
    columns, first = shape(len(axes))[0], None
    for i, (axis, (values, band, allowed)) in enumerate(zip(axes, drawn, strict=True)):
        ax = picture.add_subplot(grid[i // columns, i % columns], sharey=first)
        dress(ax, view.style)
        _panel(ax, view, axis, values, band, allowed)
        axis.apply(ax, width=width)
        if i % columns == 0:
            ax.set_ylabel("value")
        else:
            ax.tick_params(labelleft=False)
        first = first or ax
    if first is not None:
        scale.apply(first)


def _predicted(view: View, axis: ParameterAxis) -> tuple[list[Any], Any, np.ndarray]:
    """Values along the axis, the recommended one among them; predictions; which are allowed."""
    values = axis.values()
    if axis.continuous and view.centre[axis.name] not in values:
        values = sorted([*values, view.centre[axis.name]], key=axis.place)
    configs = [view.varied({axis.name: value}) for value in values]
    return values, view.band(configs), view.allowed(configs)


def _panel(
    ax: Axes, view: View, axis: ParameterAxis, values: list[Any], band: Any, allowed: np.ndarray
) -> None:
    low, middle, high = band
    x = np.array([axis.place(value) for value in values], dtype=np.float64)
    colour, interval = view.style.model, f"{LEVEL:.0%} interval"
    if axis.continuous:
        ax.fill_between(x, low, high, color=colour, alpha=0.22, lw=0, label=interval)
        ax.plot(x, middle, color=colour, lw=1.6, label="median")
    else:
        ax.vlines(x, low, high, color=colour, alpha=0.45, lw=3, label=interval)
        ax.scatter(x, middle, color=colour, s=20, zorder=3, label="median")
    _hatch(ax, view, x, allowed)
    _results(ax, view, axis)
    place, colour = axis.place_in(view.centre), view.style.recommended
    ax.axvline(place, color=colour, lw=1.2, ls="--", label="recommended config")


def _results(ax: Axes, view: View, axis: ParameterAxis) -> None:
    """The results, fainter the further they are from the slice, and what has none."""
    scale, colour = view.scale, view.style.result
    near = FAINTEST + (0.85 - FAINTEST) * view.nearness(axis.name)
    shown = scale.shown(view.values)
    places = np.array([axis.place_in(trial.config) for trial in view.done])
    if shown.any():
        colours = [to_rgba(colour, opacity) for opacity in near[shown]]
        ax.scatter(places[shown], np.array(view.values)[shown], s=11, color=colours, zorder=2)
        ax.scatter([], [], s=11, color=colour, label="result (faint: far from the slice)")
    if scale.beyond:
        scale.mark_beyond(ax, places[~shown], s=16, color=colour, label=scale.note)
    mark_failures(ax, view, lambda trial: axis.place_in(trial.config))


def _hatch(ax: Axes, view: View, x: np.ndarray, allowed: np.ndarray) -> None:
    """Hatch the stretches of the axis that violate a constraint."""
    edges = cell_edges(x)
    for fine, run in groupby(range(len(x)), key=lambda i: bool(allowed[i])):
        if not fine:
            stretch = list(run)
            ax.axvspan(
                edges[stretch[0]],
                edges[stretch[-1] + 1],
                facecolor="none",
                edgecolor=view.style.infeasible,
                hatch="////",
                lw=0.0,
                alpha=0.35,
                label="violates a constraint",
            )
