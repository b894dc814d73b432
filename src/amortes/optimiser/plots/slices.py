"""What the model expects along each parameter, the others held at the recommended config."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.gridspec import GridSpec, GridSpecFromSubplotSpec

from amortes.optimiser.plots.axis import ParameterAxis, cell_edges
from amortes.optimiser.plots.marks import mark_failures
from amortes.optimiser.plots.picture import Picture
from amortes.optimiser.plots.style import dress, hatched
from amortes.optimiser.plots.view import LEVEL, View

COLUMNS = 4
WIDTH, HEIGHT = 2.75, 2.6
"""Inches of a panel."""
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
    picture.legend_above(add_slices(picture, grid, view, axes, width / columns))
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
) -> list[Artist]:
    """Draw a panel of `width` inches for each parameter; what belongs into the legend."""
    drawn = [_predicted(view, axis) for axis in axes]
    scale = view.scale
    for _, (low, middle, high), _ in drawn:
        scale = scale.including(low, middle, high)
    columns, legend, first = shape(len(axes))[0], list[Artist](), None
    for i, (axis, (values, band, allowed)) in enumerate(zip(axes, drawn, strict=True)):
        ax = picture.add_subplot(grid[i // columns, i % columns], sharey=first)
        dress(ax, view.style)
        legend += _panel(ax, view, axis, values, band, allowed)
        axis.apply(ax, width=width)
        if i % columns == 0:
            ax.set_ylabel("value")
        else:
            ax.tick_params(labelleft=False)
        first = first or ax
    if first is not None:
        scale.apply(first)
    return legend


def _predicted(view: View, axis: ParameterAxis) -> tuple[list[Any], Any, np.ndarray]:
    """Values along the axis, the recommended one among them; predictions; which are allowed."""
    values = axis.values()
    if axis.continuous and view.centre[axis.name] not in values:
        values = sorted([*values, view.centre[axis.name]], key=axis.place)
    configs = [view.varied({axis.name: value}) for value in values]
    return values, view.band(configs), view.allowed(configs)


def _panel(
    ax: Axes, view: View, axis: ParameterAxis, values: list[Any], band: Any, allowed: np.ndarray
) -> list[Artist]:
    style, legend = view.style, list[Artist]()
    low, middle, high = band
    x = np.array([axis.place(value) for value in values], dtype=np.float64)
    interval = f"{LEVEL:.0%} interval"
    if axis.continuous:
        legend.append(
            ax.fill_between(x, low, high, color=style.model, alpha=0.22, lw=0, label=interval)
        )
        legend += ax.plot(x, middle, color=style.model, lw=1.6, label="median")
    else:
        legend.append(ax.vlines(x, low, high, color=style.model, alpha=0.45, lw=3, label=interval))
        legend.append(ax.scatter(x, middle, color=style.model, s=20, zorder=3, label="median"))
    if shaded := _not_allowed(ax, view, x, allowed):
        legend.append(shaded)
    legend += _results(ax, view, axis)
    place = axis.place_in(view.centre)
    line = ax.axvline(place, color=style.recommended, lw=1.2, ls="--", label="recommended config")
    return [*legend, line]


def _results(ax: Axes, view: View, axis: ParameterAxis) -> list[Artist]:
    """The results, fainter the further they are from the slice, and what has none."""
    style, scale, legend = view.style, view.scale, list[Artist]()
    near = FAINTEST + (0.85 - FAINTEST) * view.nearness(axis.name)
    shown = scale.shown(view.values)
    places = np.array([axis.place_in(trial.config) for trial in view.done])
    if shown.any():
        colours = [to_rgba(style.result, opacity) for opacity in near[shown]]
        ax.scatter(places[shown], np.array(view.values)[shown], s=11, color=colours, zorder=2)
        legend.append(
            ax.scatter([], [], s=11, color=style.result, label="result (faint: far from the slice)")
        )
    if scale.beyond:
        look = {"s": 16, "color": style.result, "label": scale.note}
        legend.append(scale.mark_beyond(ax, places[~shown], **look))
    return legend + mark_failures(ax, view, lambda trial: axis.place_in(trial.config))


def _not_allowed(ax: Axes, view: View, x: np.ndarray, allowed: np.ndarray) -> Artist | None:
    """Hatch the stretches of the axis that violate a constraint."""
    if bool(allowed.all()):
        return None
    halves = cell_edges(x)
    for fine, run in groupby(range(len(x)), key=lambda i: bool(allowed[i])):
        if not fine:
            stretch = list(run)
            ax.axvspan(
                halves[stretch[0]],
                halves[stretch[-1] + 1],
                facecolor="none",
                edgecolor=view.style.infeasible,
                hatch="////",
                lw=0.0,
                alpha=0.35,
            )
    return hatched(view.style.infeasible, alpha=0.5, label="violates a constraint")
