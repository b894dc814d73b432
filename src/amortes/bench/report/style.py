"""Colours, lines, and figures as SVG.

Colour says which acquisition a network uses, or which baseline a method is; GPs are grey. Solid
lines were measured here, dashed ones are published. Colours are after Okabe & Ito
(2008), told apart with any colour vision; markers repeat what they say.
"""

import io
import re
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from amortes.bench.methods.registry import METHODS
from amortes.bench.report.names import parse_method

COLOURS = {
    "ink": "#212529",
    "faint": "#dee2e6",
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#009e73",
    "purple": "#b0518c",
    "wine": "#7a1f4d",
    "grey": "#5c636a",
    "brown": "#8a6d2b",
    "sky": "#2f93cf",
    "amber": "#b97d00",
    "indigo": "#4b3f9e",
    "olive": "#6b7a1e",
    "teal": "#0f7c8a",
    "silver": "#868e96",
}
OURS = {
    "auto": ("ink", "*"),
    "pes": ("blue", "o"),
    "mes": ("vermillion", "s"),
    "jes": ("green", "^"),
    "ei": ("purple", "D"),
    "logei": ("wine", "v"),
    "gibbon": ("grey", "s"),
}
"""The colour and the marker of an acquisition."""
DPI = 150
DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.2))
Look = dict[str, Any]
"""How a line is drawn: options of `Axes.plot`."""
MODELS: dict[str, Look] = {
    "ours": {"ls": "-", "lw": 1.6},
    "fb": {"color": "grey", "ls": "-", "lw": 1.4},
    "map": {"color": "brown", "ls": DOTTED, "lw": 1.5},
    "paper": {"marker": "", "ls": DASHED, "lw": 1.2},
    "paper:fb": {"color": "grey", "ls": DASHED, "lw": 1.2, "mfc": "none"},
    "other": {"ls": "-.", "lw": 1.3},
}
"""What a model changes of the look of its acquisition."""


def look(name: str, *, apart: bool = False) -> Look:
    """The appearance of a method in every figure.

    `apart` is for panels that all acquisitions share: fully Bayesian GPs have colours there, too.
    """
    method = parse_method(name)
    colour, marker = OURS.get(method.acquisition, ("silver", "*"))
    options: Look = {"color": colour, "marker": marker, "ms": 4.0} | MODELS[method.model]
    if method.model == "other" and (entry := METHODS.get(name)):
        options |= {"color": entry.colour, "marker": entry.marker}
    elif method.model == "ours" and method.weights:
        options |= {"ls": "-.", "lw": 1.3, "mfc": "none"}
    elif method.model in ("fb", "paper:fb") and apart:
        options |= {"color": colour, "ls": DOTTED, "lw": 1.2, "mfc": "none"}
    return options | {"color": COLOURS[options["color"]]}


def tidy(ax: Axes) -> None:
    """The common look of all axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(COLOURS["grey"])
    ax.grid(color=COLOURS["faint"], lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=COLOURS["ink"], labelsize=8)
    ax.tick_params(length=3)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set(color=COLOURS["ink"], fontsize=9)


def legend(figure: Figure, looks: dict[str, Look], columns: int = 4) -> None:
    """One legend below all axes, of labels and how they look."""
    figure.legend(
        [Line2D([], [], **options) for options in looks.values()],
        [*looks],
        loc="outside lower center",
        ncols=min(columns, len(looks)),
        frameon=False,
        fontsize=9,
        labelcolor=COLOURS["ink"],
    )


def svg_text(figure: Figure) -> str:
    """The figure as SVG on white; coordinates to a hundredth of a point."""
    buffer = io.BytesIO()
    # A fixed salt and no date: the same results give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "amortes", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})

    def shorten(match: re.Match[str]) -> str:
        return re.sub(r"(\.\d\d)\d+", r"\1", match[0])

    return re.sub(r' (d|x|y)="[^"]*"', shorten, buffer.getvalue().decode())
