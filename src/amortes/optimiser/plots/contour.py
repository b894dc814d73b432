"""What the model expects over two parameters, and how uncertain it is."""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator

from amortes.optimiser.plots.axis import ParameterAxis, cell_edges
from amortes.optimiser.plots.picture import Picture
from amortes.optimiser.plots.style import STYLES, dress, hatched
from amortes.optimiser.plots.values import ValueScale
from amortes.optimiser.plots.view import LEVEL, View
from amortes.optimiser.space import Config

GRID, FINE = 48, 80
"""Values along a continuous axis; if the other has only a few values."""
WIDTH = 4.4
BANDS = 16
HATCHES = STYLES["dark"].infeasible
"""Seen on all colours of the surfaces."""


def draw_contour(view: View, x: str, y: str) -> Picture:
    """The figure: median, and width of the interval, others held at the recommended."""
    axes = [view.axis(name) for name in (x, y)]
    most = GRID if all(axis.continuous for axis in axes) else FINE
    columns, rows = (_some(axis.values(), most) for axis in axes)
    configs = [view.varied({x: a, y: b}) for b in rows for a in columns]
    low, middle, high = (part.reshape(len(rows), -1) for part in view.band(configs))
    allowed = view.allowed(configs).reshape(len(rows), -1)
    along = np.array([axes[0].place(value) for value in columns])
    where = along, np.array([axes[1].place(value) for value in rows])
    picture = Picture(2 * WIDTH + 0.6, 4.3, view.style)
    widths = ValueScale.of((high - low).ravel().tolist(), maximise=False)
    legend: list[Artist] = []
    panels = (
        ("median", *view.scale.within(middle), "viridis" if view.maximise else "viridis_r"),
        (f"width of the {LEVEL:.0%} interval", *widths.within(high - low), "cividis"),
    )
    for ax, (title, Z, scale, cmap) in zip(picture.subplots(1, 2), panels, strict=True):
        dress(ax, view.style, grid=None)
        drawn = _surface(ax, axes, where, Z, scale, cmap)
        ticks = LogLocator(numticks=8) if scale.log else None
        written = LogFormatterSciNotation() if scale.log else None
        picture.colour_bar(drawn, ax, shrink=0.95, pad=0.02, ticks=ticks, format=written)
        ax.set_title(title, loc="left", fontsize="medium")
        if not allowed.all():
            shade = ax.contourf(*where, ~allowed, [0.5, 1.5], colors="none", hatches=["////"])
            shade.set(edgecolor=HATCHES, linewidth=0.0)
            legend.append(hatched(HATCHES, label="violates a constraint"))
        legend += _marks(ax, view, *axes)
        axes[0].apply(ax, width=WIDTH - 0.8)
        axes[1].apply(ax, width=WIDTH, vertical=True)
    picture.legend_above(legend)
    return picture


def _some(values: list[Any], most: int) -> list[Any]:
    """At most so many of them, the first and the last included."""
    if len(values) <= most:
        return values
    steps = np.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[i] for i in dict.fromkeys(steps.tolist())]


def _surface(
    ax: Axes,
    axes: list[ParameterAxis],
    where: tuple[np.ndarray, np.ndarray],
    Z: np.ndarray,
    scale: ValueScale,
    cmap: str,
) -> Any:
    """Bands of colour between continuous axes, cells if one of them has few values."""
    if all(axis.continuous for axis in axes):
        return ax.contourf(*where, Z, levels=_levels(scale), norm=scale.norm(), cmap=cmap)
    return ax.pcolormesh(*map(cell_edges, where), Z, norm=scale.norm(), cmap=cmap, rasterized=True)


def _levels(scale: ValueScale) -> Any:
    """Where one band of colour ends and the next begins."""
    low, high = (scale.low, scale.high) if scale.high > scale.low else scale.limits
    if scale.log:
        return np.geomspace(low, high, BANDS)
    return MaxNLocator(nbins=BANDS).tick_values(low, high)


def _marks(ax: Axes, view: View, x: ParameterAxis, y: ParameterAxis) -> list[Artist]:
    """The trials and the recommended config."""
    style = view.style
    kinds: list[tuple[str, list[Config], dict[str, Any]]] = [
        ("result", [t.config for t in view.done], {"marker": "o", "s": 16, "color": "#ffffff"}),
        ("failed", [t.config for t in view.failed], {"marker": "X", "s": 34}),
        ("infeasible", [t.config for t in view.infeasible], {"marker": "P", "s": 34}),
        ("recommended", [view.centre], {"marker": "*", "s": 190}),
    ]
    return [
        ax.scatter(
            [x.place_in(config) for config in configs],
            [y.place_in(config) for config in configs],
            label=name,
            zorder=3 + (name == "recommended"),
            edgecolor="#ffffff" if name == "recommended" else "#222222",
            lw=0.8,
            **{"color": getattr(style, name), **look},
        )
        for name, configs, look in kinds
        if configs
    ]
