"""What the model expects over two parameters, and how uncertain it is."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import (
    Formatter,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    StrMethodFormatter,
)

from amortes.optimiser.plots.axis import ParameterAxis, cell_edges
from amortes.optimiser.plots.picture import STYLES, Picture, dress
from amortes.optimiser.plots.values import ValueScale
from amortes.optimiser.plots.view import LEVEL, View
from amortes.optimiser.space import Config

GRID, FINE = 48, 80
"""Values along a continuous axis; if the other has only a few values."""
WIDTH = 4.4
BANDS = 16
MARKERS = {"failed": "X", "infeasible": "P"}
HATCHES = STYLES["dark"].infeasible
"""Seen on all colours of the surfaces."""


def draw_contour(view: View, x: str, y: str) -> Picture:
    """The figure: median, and width of the interval, others held at the recommended."""
    axes = [view.axis(name) for name in (x, y)]
    smooth = all(axis.continuous for axis in axes)
    most = GRID if smooth else FINE
    columns, rows = (_some(axis.values(), most) for axis in axes)
    configs = [view.varied({x: a, y: b}) for b in rows for a in columns]
    low, middle, high = (part.reshape(len(rows), -1) for part in view.band(configs))
    allowed = view.allowed(configs).reshape(len(rows), -1)
    unused = np.array([x not in c or y not in c for c in configs]).reshape(len(rows), -1)
    where = _places(axes[0], columns), _places(axes[1], rows)
    picture = Picture(2 * WIDTH + 0.6, 4.3, view.style)
    width = high - low
    if view.scale.beyond:  # far off they are as wide as the worst results are bad
        width = np.minimum(width, view.scale.limits[1] - view.scale.limits[0])
    widths = ValueScale.of(width.ravel().tolist(), maximise=False)
    panels = (
        ("median", middle, view.scale, "viridis" if view.maximise else "viridis_r"),
        (f"width of the {LEVEL:.0%} interval", high - low, widths, "cividis"),
    )
    for ax, (title, found, whole, cmap) in zip(picture.subplots(1, 2), panels, strict=True):
        dress(ax, view.style, grid=None)
        Z, scale = whole.within(found)
        Z = np.ma.masked_array(Z, unused)
        below, above = (found < scale.low).any(), (found > scale.high).any()
        arrows = "both" if below and above else "min" if below else "max" if above else "neither"
        drawn = _surface(ax, where, Z, scale, smooth=smooth, cmap=cmap, extend=arrows)
        bar = picture.colour_bar(drawn, ax, shrink=0.95, pad=0.02, **_bar_ticks(scale))
        bar.minorformatter = NullFormatter()
        ax.set_title(title, loc="left", fontsize="medium")
        if not allowed.all():
            cells = (*where, ~allowed) if smooth else _as_cells(*where, ~allowed)
            shade = ax.contourf(*cells, [0.5, 1.5], colors="none", hatches=["////"])
            shade.set(edgecolor=HATCHES, linewidth=0.0)
        _mark_trials(ax, view, *axes)
        axes[0].apply(ax, width=WIDTH - 0.8)
        axes[1].apply(ax, width=WIDTH, vertical=True)
    forbidden = Patch(facecolor="none", edgecolor=HATCHES, hatch="////", lw=0.0)
    forbidden.set_label("violates a constraint")
    empty = Patch(facecolor="none", edgecolor=view.style.text, lw=0.6, label="unused")
    shades = ((forbidden, not allowed.all()), (empty, unused.any()))
    picture.legend_above(*(patch for patch, there in shades if there))
    return picture


def _some(values: list[Any], most: int) -> list[Any]:
    """At most so many of them, the first and the last included."""
    if len(values) <= most:
        return values
    steps = np.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[i] for i in dict.fromkeys(steps.tolist())]


def _places(axis: ParameterAxis, values: list[Any]) -> np.ndarray:
    """Where values are drawn; those at the ends of a continuous axis, at its ends.

    The place of a whole number is in the middle of those that are rounded to it.
    """
    places = np.array([axis.place(value) for value in values])
    if axis.continuous:
        places[[0, -1]] = 0.0, 1.0
    return places


def _as_cells(x: np.ndarray, y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, ...]:
    """Coordinates and values with which contours are the edges of cells."""
    corners = (np.repeat(cell_edges(places), 2)[1:-1] for places in (x, y))
    return (*corners, Z.repeat(2, axis=0).repeat(2, axis=1))


def _surface(
    ax: Axes,
    where: tuple[np.ndarray, np.ndarray],
    Z: np.ndarray,
    scale: ValueScale,
    *,
    smooth: bool,
    cmap: str,
    extend: str,
) -> Any:
    """Bands of colour between continuous axes, cells if one of them has few values."""
    if smooth:
        look = {"levels": _levels(scale), "extend": extend}
        bands = ax.contourf(*where, Z, norm=scale.norm(), cmap=cmap, **look)
        bands.set(edgecolor="face", linewidth=0.4)  # else SVG and PDF have gaps between them
        return bands
    colours = colormaps[cmap].copy()
    colours.colorbar_extend = extend  # type: ignore[assignment]
    return ax.pcolormesh(
        *map(cell_edges, where), Z, norm=scale.norm(), cmap=colours, rasterized=True
    )


def _levels(scale: ValueScale) -> Any:
    """Where one band of colour ends and the next begins."""
    if scale.log:
        return np.geomspace(scale.low, scale.high, BANDS)
    return MaxNLocator(nbins=BANDS).tick_values(scale.low, scale.high)


def _bar_ticks(scale: ValueScale) -> dict[str, Any]:
    """Ticks of a bar of colours; also at 2 and 5 times the powers of ten if there are few."""
    if not scale.log:
        return {}
    few = scale.high < 100.0 * scale.low
    written: Formatter = StrMethodFormatter("{x:g}") if few else LogFormatterSciNotation()
    return {"ticks": LogLocator(subs=(1, 2, 5) if few else (1,), numticks=8), "format": written}


def _mark_trials(ax: Axes, view: View, x: ParameterAxis, y: ParameterAxis) -> None:
    """The trials and the recommended config."""
    style, scale = view.style, view.scale
    near, far = list[Config](), list[Config]()
    for trial, shown in zip(view.done, scale.shown(view.values), strict=True):
        (near if shown else far).append(trial.config)
    white, beyond = "#ffffff", scale.note if far else ""
    kinds = [
        ("result", near, white, "o", 16),
        (beyond, far, white, "v" if view.maximise else "^", 26),
        *(
            (name, [t.config for t in some], getattr(style, name), MARKERS[name], 34)
            for name, some in view.without_value.items()
        ),
        ("recommended", [view.centre], style.recommended, "*", 190),
    ]
    for name, configs, colour, marker, size in kinds:
        if configs:
            ax.scatter(
                [x.place_in(config) for config in configs],
                [y.place_in(config) for config in configs],
                s=size,
                color=colour,
                marker=marker,
                label=name,
                zorder=3 + (name == "recommended"),
                edgecolor=white if name == "recommended" else "#222222",
                lw=0.8,
            )
