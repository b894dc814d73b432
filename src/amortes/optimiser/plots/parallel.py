"""Every trial as a line across the parameters, coloured by its value."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.patheffects import withStroke

from amortes.optimiser.choices import Choices, Parameter
from amortes.optimiser.plots.axis import ParameterAxis
from amortes.optimiser.plots.picture import STYLES, Picture, dress, labels
from amortes.optimiser.plots.view import View
from amortes.optimiser.trials import Trial

WIDTH = 1.5
"""Inches between two parameters."""
TICKS = 7
"""Labels at an axis."""
UNUSED = -0.08
"""Where lines cross the axis of a parameter that their config does not have."""


def draw_parallel(view: View, names: Sequence[str]) -> Picture:
    """The figure, with an axis for each parameter."""
    picture = Picture(min(max(WIDTH * len(names) + 1.2, 5.0), 16.0), 4.6, view.style)
    ax = picture.subplots()
    dress(ax, view.style, grid=None)
    axes = [every_choice(name, view.space.free[name]) for name in names]
    scale = view.scale
    colours = ScalarMappable(scale.norm(), _colours(view))
    order = np.argsort(view.values if view.maximise else -np.asarray(view.values))
    ordered = [view.done[i] for i in order]  # the best last, on top of all others
    lines = _lines(ax, axes, ordered, alpha=0.55, lw=1.0)
    lines.set_color(colours.to_rgba([float(t.value or 0.0) for t in ordered]))  # type: ignore[arg-type]
    lines.set_alpha(0.6)
    if ordered:
        best = _lines(ax, axes, ordered[-1:], colors=view.style.recommended, lw=2.6, zorder=4)
        best.set(label="best result")
        best.set_path_effects([withStroke(linewidth=4.2, foreground=view.style.background)])
    for name, trials in view.without_value.items():
        look = {"lw": 0.9, "ls": "--", "zorder": 3, "label": name}
        _lines(ax, axes, trials, colors=getattr(view.style, name), **look)
    if scale.beyond:
        note = scale.note.replace("axis", "colours")
        worst = colours.cmap(0.0 if view.maximise else 1.0)
        ax.plot([], [], color=worst, label=note)
    _label_axes(ax, axes, view)
    bar = picture.colour_bar(colours, ax, pad=0.01, fraction=0.05)
    bar.set_label("value", color=view.style.text)
    picture.legend_above()
    return picture


def _colours(view: View) -> Colormap:
    """From bad to good: the good ones stand out from the background."""
    light = view.style is STYLES["light"]
    shades = colormaps["viridis"](np.linspace(0.9, 0.0, 256) if light else np.linspace(0.2, 1, 256))
    return ListedColormap(shades if view.maximise else shades[::-1])


def every_choice(name: str, parameter: Parameter) -> ParameterAxis:
    """The axis of a parameter with all its choices."""
    choices = parameter.choices if isinstance(parameter, Choices) else ()
    return ParameterAxis.of(name, parameter, choices)


def _lines(
    ax: Axes, axes: Sequence[ParameterAxis], trials: Sequence[Trial], **look: object
) -> LineCollection:
    """A line for each trial; it passes below parameters that its config does not have."""
    paths = []
    for trial in trials:
        places = [axis.place_in(trial.config) for axis in axes]
        paths.append(np.column_stack([np.arange(len(axes)), np.nan_to_num(places, nan=UNUSED)]))
    drawn = LineCollection(paths, **look)  # type: ignore[arg-type]
    ax.add_collection(drawn)
    return drawn


def _label_axes(ax: Axes, axes: Sequence[ParameterAxis], view: View) -> None:
    """Names below, and values beside a vertical line for each parameter."""
    for i, axis in enumerate(axes):
        ax.axvline(i, color=view.style.text, lw=0.8, zorder=1)
        places, ticks, _ = axis.ticks()
        every = max(1, -(-len(places) // TICKS))
        texts = list(zip(places, ticks, strict=True))[::every]
        for place, text in texts + [(UNUSED, "unused")] * (axis.name in view.space.conditions):
            ax.text(
                i + 0.04,
                place,
                text,
                color=view.style.text,
                fontsize="x-small",
                va="center",
                zorder=6,
                path_effects=[withStroke(linewidth=2.4, foreground=view.style.background)],
            )
    crowded = max(len(axis.name) for axis in axes) * len(axes) > 85
    ax.set_xticks(
        range(len(axes)),
        labels([axis.name for axis in axes], 24),
        rotation=30 if crowded else 0,
        ha="right" if crowded else "center",
    )
    ax.set_xlim(-0.1, len(axes) - 0.7)
    conditional = any(axis.name in view.space.conditions for axis in axes)
    ax.set_ylim((UNUSED if conditional else 0.0) - 0.03, 1.03)
    ax.set_yticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(axis="x", length=0)
