"""Figures by trial: the values and the best so far, and what was expected of each trial.

What a trial is expected to bring when it is asked for, information and improvement, shrinks as a
run converges; once little is expected of any trial it is time to stop.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from amortes.errors import DataError
from amortes.optimiser.explanation import Explanation
from amortes.optimiser.plots.picture import Picture, Style, dress
from amortes.optimiser.plots.values import ValueScale
from amortes.optimiser.plots.view import LEVEL, View, mark_failures
from amortes.optimiser.text import counted

SMALLEST = 1e-9
"""Gains below this share of the largest shown are drawn as if they were that."""
LOOKS = {
    "explore": ("explores", "o", "model"),
    "exploit": ("exploits", "^", "recommended"),
    "repeat": ("repeats", "s", "infeasible"),
    "initial": ("spread over the space", "D", "result"),
    "given": ("past result", "P", "result"),
}


def draw_convergence(view: View, width: float = 8.0, height: float = 4.0) -> Picture:
    """The figure of the values."""
    picture = Picture(width, height, view.style)
    add_convergence(picture.subplots(), view)
    picture.legend_above()
    return picture


def add_convergence(ax: Axes, view: View) -> None:
    """Draw the values on these axes."""
    style, scale = view.style, view.scale
    dress(ax, style)
    x, y = np.array([trial.number for trial in view.done]), np.array(view.values)
    last = max([trial.number for trial in view.trials], default=0)
    shown = scale.shown(view.values)
    past = x < view.past
    for name, some, face in (("past result", past, "none"), ("result", ~past, style.result)):
        if (some & shown).any():
            at = x[some & shown], y[some & shown]
            ax.scatter(
                *at, s=18, facecolor=face, edgecolor=style.result, lw=0.9, label=name, zorder=3
            )
    if len(y):
        best = (np.maximum if view.maximise else np.minimum).accumulate(y)
        steps = np.append(x, last), np.append(best, best[-1])
        ax.step(*steps, where="post", color=style.model, lw=1.8, label="best so far")
    if scale.beyond:
        scale.mark_beyond(ax, x[~shown], s=26, color=style.result, label=scale.note)
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
    _trial_axis(ax, last + 1)
    ax.set_ylabel("value")
    said = [counted(len(y), "result")]
    said += [f"{len(some)} {name}" for name, some in view.without_value.items()]
    ax.set_title(", ".join(said), loc="left", fontsize="medium")


def draw_gain(explanations: Sequence[Explanation], style: Style) -> Picture:
    """The figure of what was expected; explanations without a model are left out."""
    known = [e for e in explanations if e.information is not None and e.trial is not None]
    if not known:
        raise DataError("no gain to draw yet: every trial was chosen before there was a result.")
    picture = Picture(8.0, 4.8, style)
    above, below = picture.subplots(2, 1, sharex=True)
    _add_gains(above, known, [float(e.information or 0.0) for e in known], style, log=False)
    above.set_ylabel("information (nats)")
    _add_gains(below, known, [float(e.improvement or 0.0) for e in known], style, log=True)
    below.set_ylabel("improvement")
    _trial_axis(below, max(e.trial.number for e in known if e.trial))
    above.set_title("expected of each trial when it was asked for", loc="left", fontsize="medium")
    picture.legend_above()
    picture.align_ylabels()
    return picture


def _add_gains(
    ax: Axes, known: Sequence[Explanation], gains: Sequence[float], style: Style, *, log: bool
) -> None:
    """Draw the gains of trials; on a logarithmic axis, if it may be one and they span decades."""
    dress(ax, style)
    x = np.array([e.trial.number for e in known if e.trial is not None])
    y = np.maximum(gains, SMALLEST * ValueScale.of(gains, maximise=False).high)
    scale = ValueScale.of(y.tolist(), maximise=False)
    scale = replace(scale, log=scale.log and log)
    shown = scale.shown(y.tolist())
    ax.plot(x, np.where(shown, y, np.nan), color=style.faint, lw=1.2, zorder=1)
    for kind, (name, marker, colour) in LOOKS.items():
        if (some := shown & np.array([e.kind == kind for e in known])).any():
            shade = getattr(style, colour)
            ax.scatter(x[some], y[some], s=24, marker=marker, color=shade, label=name, zorder=3)
    if scale.beyond:
        label = scale.note.replace("result", "trial")
        scale.mark_beyond(ax, x[~shown], s=26, color=style.result, label=label)
    scale.apply(ax)
    if not scale.log:
        ax.set_ylim(bottom=0.0)


def _trial_axis(ax: Axes, last: int) -> None:
    """Numbers of trials along the horizontal axis."""
    ax.set_xlim(-0.5, last + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    ax.set_xlabel("trial")
