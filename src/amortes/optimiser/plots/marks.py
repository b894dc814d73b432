"""Marks of trials that gave no value: crosses at the good edge of the values, where none are."""

from collections.abc import Callable

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from amortes.optimiser.plots.view import View
from amortes.optimiser.trials import Trial

MARKERS = {"failed": "x", "infeasible": "+"}


def mark_failures(ax: Axes, view: View, place: Callable[[Trial], float]) -> list[Artist]:
    """Mark failed and infeasible trials along the horizontal axis; what belongs into the legend."""
    legend: list[Artist] = []
    edge = 0.98 if view.maximise else 0.02
    for name, trials in (("failed", view.failed), ("infeasible", view.infeasible)):
        if trials:
            marks = ax.scatter(
                [place(trial) for trial in trials],
                [edge] * len(trials),
                marker=MARKERS[name],
                s=26,
                color=getattr(view.style, name),
                lw=1.3,
                transform=ax.get_xaxis_transform(),
                clip_on=False,
                zorder=5,
                label=name,
            )
            legend.append(marks)
    return legend
