"""Values by trial, and the best so far."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from amortes.optimiser.plots.picture import Picture, dress
from amortes.optimiser.plots.view import LEVEL, View, mark_failures
from amortes.optimiser.text import counted


def draw_convergence(view: View, width: float = 8.0, height: float = 4.0) -> Picture:
    """The figure."""
    picture = Picture(width, height, view.style)
    add_convergence(picture.subplots(), view)
    picture.legend_above()
    return picture


def add_convergence(ax: Axes, view: View) -> None:
    """Draw it on these axes."""
    style, scale = view.style, view.scale
    dress(ax, style)
    numbers, values = [trial.number for trial in view.done], view.values
    last = max([trial.number for trial in view.trials], default=0)
    shown = scale.shown(values)
    for past, face in ((True, "none"), (False, style.result)):
        some = [i for i, n in enumerate(numbers) if (n < view.past) == past and shown[i]]
        if some:
            ax.scatter(
                [numbers[i] for i in some],
                [values[i] for i in some],
                s=18,
                facecolor=face,
                edgecolor=style.result,
                lw=0.9,
                label="past result" if past else "result",
                zorder=3,
            )
    if values:
        best = (np.maximum if view.maximise else np.minimum).accumulate(values)
        x, y = [*numbers, last], [*best, best[-1]]
        ax.step(x, y, where="post", color=style.model, lw=1.8, label="best so far")
    if scale.beyond:
        x = [n for n, there in zip(numbers, shown, strict=True) if not there]
        scale.mark_beyond(ax, x, s=26, color=style.result, label=scale.note)
    mark_failures(ax, view, lambda trial: trial.number)
    for trial in view.trials:
        if trial.status == "pending":
            ax.axvline(trial.number, color=style.result, lw=0.9, ls=":", label="pending")
    if (found := view.recommendation) is not None:
        colour = style.recommended
        ax.vlines(last + 1, found.lower, found.upper, color=colour, lw=2.0, alpha=0.7)
        mark = ax.scatter([last + 1], [found.median], s=26, color=colour, marker="D", zorder=5)
        mark.set_label(f"recommended ({LEVEL:.0%} interval)")
        scale = scale.including([found.lower, found.median, found.upper])
    scale.apply(ax)
    ax.set_xlim(-0.5, last + 1.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    ax.set_xlabel("trial")
    ax.set_ylabel("value")
    said = [counted(len(values), "result")]
    said += [f"{len(some)} {name}" for name, some in view.without_value.items()]
    ax.set_title(", ".join(said), loc="left", fontsize="medium")
