"""What each trial was expected to bring when it was asked for: information and improvement.

Both shrink as a run converges; once little is expected of any trial it is time to stop.
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

SMALLEST = 1e-9
"""Gains below this share of the largest shown are drawn as if they were that."""
LOOKS = {
    "explore": ("explores", "o", "model"),
    "exploit": ("exploits", "^", "recommended"),
    "repeat": ("repeats", "s", "infeasible"),
    "initial": ("spread over the space", "D", "result"),
    "given": ("past result", "P", "result"),
}


def draw_gain(explanations: Sequence[Explanation], style: Style) -> Picture:
    """The figure; explanations without a model are left out."""
    known = [e for e in explanations if e.information is not None and e.trial is not None]
    if not known:
        raise DataError("no gain to draw yet: every trial was chosen before there was a result.")
    picture = Picture(8.0, 4.8, style)
    above, below = picture.subplots(2, 1, sharex=True)
    _panel(above, known, [float(e.information or 0.0) for e in known], style, log=False)
    above.set_ylabel("information (nats)")
    _panel(below, known, [float(e.improvement or 0.0) for e in known], style)
    below.set_ylabel("improvement")
    below.set_xlabel("trial")
    below.set_xlim(-0.5, max(e.trial.number for e in known if e.trial) + 0.5)
    below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    above.set_title("expected of each trial when it was asked for", loc="left", fontsize="medium")
    picture.legend_above()
    picture.align_ylabels()
    return picture


def _panel(
    ax: Axes,
    explanations: Sequence[Explanation],
    gains: Sequence[float],
    style: Style,
    *,
    log: bool = True,
) -> None:
    """Draw the gains of trials; on a logarithmic axis, if it may be one and they span decades."""
    dress(ax, style)
    x = [e.trial.number for e in explanations if e.trial is not None]
    usual = ValueScale.of(gains, maximise=False)
    y = np.maximum(gains, SMALLEST * usual.high)
    scale = ValueScale.of(y.tolist(), maximise=False)
    scale = replace(scale, log=scale.log and log)
    shown = scale.shown(y.tolist())
    ax.plot(x, np.where(shown, y, np.nan), color=style.faint, lw=1.2, zorder=1)
    for kind, (name, marker, colour) in LOOKS.items():
        some = [i for i, e in enumerate(explanations) if e.kind == kind and shown[i]]
        if some:
            ax.scatter(
                [x[i] for i in some],
                y[some],
                marker=marker,
                s=24,
                color=getattr(style, colour),
                label=name,
                zorder=3,
            )
    if scale.beyond:
        beyond = [place for place, there in zip(x, shown, strict=True) if not there]
        label = scale.note.replace("result", "trial")
        scale.mark_beyond(ax, beyond, s=26, color=style.result, label=label)
    scale.apply(ax)
    if not scale.log:
        ax.set_ylim(bottom=0.0)
