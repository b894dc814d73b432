"""Values by trial, and the best so far."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from amortes.optimiser.plots.marks import mark_failures
from amortes.optimiser.plots.picture import Picture
from amortes.optimiser.plots.style import dress
from amortes.optimiser.plots.view import LEVEL, View


def draw_convergence(view: View) -> Picture:
    """The figure."""
    picture = Picture(8.0, 4.0, view.style)
    picture.legend_above(add_convergence(picture.subplots(), view))
    return picture


def add_convergence(ax: Axes, view: View) -> list[Artist]:
    """Draw it on these axes; what belongs into the legend."""
    style, scale = view.style, view.scale
    dress(ax, style)
    legend: list[Artist] = []
    numbers, values = [trial.number for trial in view.done], view.values
    shown = scale.shown(values)
    for past, face in ((True, "none"), (False, style.result)):
        some = [i for i, n in enumerate(numbers) if (n < view.past) == past and shown[i]]
        if some:
            dots = ax.scatter(
                [numbers[i] for i in some],
                [values[i] for i in some],
                s=18,
                facecolor=face,
                edgecolor=style.result,
                lw=0.9,
                label="past result" if past else "result",
                zorder=3,
            )
            legend.append(dots)
    if values:
        best = (np.maximum if view.maximise else np.minimum).accumulate(values)
        last = max(trial.number for trial in view.trials)
        x, y = [*numbers, last], [*best, best[-1]]
        lines = ax.step(x, y, where="post", color=style.model, lw=1.8, label="best so far")
        legend += lines
    if scale.beyond:
        x = [n for n, there in zip(numbers, shown, strict=True) if not there]
        look = {"s": 26, "color": style.result, "label": scale.note}
        legend.append(scale.mark_beyond(ax, x, **look))
    legend += mark_failures(ax, view, lambda trial: trial.number)
    waiting = [trial.number for trial in view.trials if trial.status == "pending"]
    for i, number in enumerate(waiting):
        line = ax.axvline(number, color=style.result, lw=0.9, ls=":", label="pending")
        legend += [line] * (i == 0)
    if view.recommendation is not None:
        legend.append(_recommended(ax, view))
        found = view.recommendation
        scale = scale.including([found.lower, found.median, found.upper])
    scale.apply(ax)
    end = max([trial.number for trial in view.trials], default=0) + 1.5
    ax.set_xlim(-0.5, max(end, 1.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    ax.set_xlabel("trial")
    ax.set_ylabel("value")
    counts = ((view.failed, "failed"), (view.infeasible, "infeasible"))
    said = [f"{len(values)} result{'' if len(values) == 1 else 's'}"]
    said += [f"{len(some)} {name}" for some, name in counts if some]
    ax.set_title(", ".join(said), loc="left", fontsize="medium")
    return legend


def _recommended(ax: Axes, view: View) -> Artist:
    """What an evaluation of the recommended config is expected to give, after the last trial."""
    found = view.recommendation
    assert found is not None
    x = max(trial.number for trial in view.trials) + 1
    ax.vlines(x, found.lower, found.upper, color=view.style.recommended, lw=2.0, alpha=0.7)
    return ax.scatter(
        [x],
        [found.median],
        marker="D",
        s=26,
        color=view.style.recommended,
        zorder=5,
        label=f"recommended ({LEVEL:.0%} interval)",
    )
