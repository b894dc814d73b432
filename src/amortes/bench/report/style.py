"""Colours, lines, and figures as SVG.

Colour says which acquisition a network uses, or which baseline a method is; GPs are grey. Solid
lines were measured here, dashed ones are published. Colours can be told apart with any colour
vision; markers repeat what they say.
"""

import io
import re
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amortes.bench.methods.registry import METHODS, Entry
from amortes.bench.report.names import ACQUISITIONS, Acquisition, parse_method

GREY, FAINT = "#5c636a", "#dee2e6"
DPI = 150
DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.2))
Look = dict[str, Any]
"""How a line is drawn: options of `Axes.plot`."""
MODELS: dict[str, Look] = {
    "ours": {"ls": "-", "lw": 1.6},
    "fb": {"color": GREY, "ls": "-", "lw": 1.4},
    "map": {"color": "#8a6d2b", "ls": DOTTED, "lw": 1.5},
    "paper": {"marker": "", "ls": DASHED, "lw": 1.2},
    "paper:fb": {"color": GREY, "ls": DASHED, "lw": 1.2, "mfc": "none"},
    "other": {"ls": "-.", "lw": 1.3},
}
"""What a model changes of the look of its acquisition."""


def look(name: str, *, apart: bool = False) -> Look:
    """The appearance of a method in every figure.

    `apart` is for panels that all acquisitions share: fully Bayesian GPs have colours there, too.
    """
    method = parse_method(name)
    entry: Acquisition | Entry = METHODS.get(name, Entry(make=""))
    if method.acquisition:
        entry = ACQUISITIONS[method.acquisition]
    options: Look = {"color": entry.colour, "marker": entry.marker, "ms": 4.0}
    options |= MODELS[method.model] | {"label": method.label}
    if method.model == "ours" and method.weights:
        options |= {"ls": "-.", "lw": 1.3, "mfc": "none"}
    elif method.model in ("fb", "paper:fb") and apart:
        options |= {"color": entry.colour, "ls": DOTTED, "lw": 1.2, "mfc": "none"}
    return options


def tidy(ax: Axes) -> None:
    """The common look of all axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=FAINT, lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8, length=3)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_fontsize(9)


def svg_text(figure: Figure) -> str:
    """The figure as SVG on white; coordinates to a hundredth of a point."""
    buffer = io.BytesIO()
    # A fixed salt and no date: the same results give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "amortes", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})

    def shorten(match: re.Match[str]) -> str:
        return re.sub(r"(\.\d\d)\d+", r"\1", match[0])

    return re.sub(r' (d|x|y)="[^"]*"', shorten, buffer.getvalue().decode())
