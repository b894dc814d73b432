"""Colours, lines, and saving figures: as files, and as SVG that follows the page's theme.

Colour says which acquisition a network uses, or which baseline a method is; GPs are grey. Solid
lines were measured here, dashed ones are published. Colours are after Okabe & Ito
(2008), told apart with any colour vision; markers repeat what they say.
"""

import io
import re
from typing import Any

import markupsafe
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from amortes.bench.methods.registry import METHODS
from amortes.bench.report.names import parse_method

COLOURS = {
    "ink": ("#212529", "#e4e7ea"),
    "faint": ("#dee2e6", "#343b42"),
    "blue": ("#0072b2", "#4aa8e8"),
    "vermillion": ("#d55e00", "#ff8b45"),
    "green": ("#009e73", "#2ecfa0"),
    "purple": ("#b0518c", "#e693c6"),
    "wine": ("#7a1f4d", "#c8648f"),
    "grey": ("#5c636a", "#adb5bd"),
    "brown": ("#8a6d2b", "#cfae62"),
    "sky": ("#2f93cf", "#8fd0f7"),
    "amber": ("#b97d00", "#f4c04f"),
    "indigo": ("#4b3f9e", "#a79bf0"),
    "olive": ("#6b7a1e", "#b8c95a"),
    "teal": ("#0f7c8a", "#4fc3d0"),
    "silver": ("#868e96", "#868e96"),
}
"""Name: on white, on black. The page defines a CSS variable for each."""
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
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


def look(name: str, *, apart: bool = False) -> Look:
    """The appearance of a method in every figure.

    `apart` is for panels that all acquisitions share: fully Bayesian GPs have colours there, too.
    """
    method = parse_method(name)
    colour, marker = OURS.get(method.acquisition, ("silver", "*"))
    found: tuple[str, str, Any, float]
    match method.model:
        case "fb" | "paper:fb" if apart:
            found = (colour, marker, DOTTED, 1.2)
        case "ours":
            found = (colour, marker, "-.", 1.3) if method.weights else (colour, marker, "-", 1.6)
        case "fb":
            found = ("grey", marker, "-", 1.4)
        case "map":
            found = ("brown", marker, DOTTED, 1.5)
        case "paper":
            found = (colour, "", DASHED, 1.2)
        case "paper:fb":
            found = ("grey", marker, DASHED, 1.2)
        case _:
            entry = METHODS.get(name)
            found = (
                (entry.colour, entry.marker, "-.", 1.3) if entry else (colour, marker, "-.", 1.3)
            )
    hollow = method.weights or method.model == "paper:fb" or (apart and method.model == "fb")
    light = LIGHT[found[0]]
    options = dict(zip(("color", "marker", "ls", "lw"), (light, *found[1:]), strict=True))
    return options | {"ms": 4.0, "mfc": "none" if hollow else light}


def tidy(ax: Axes) -> None:
    """The common look of all axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(LIGHT["grey"])
    ax.grid(color=LIGHT["faint"], lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=LIGHT["ink"], labelsize=8)
    ax.tick_params(length=3)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set(color=LIGHT["ink"], fontsize=9)


def legend(figure: Figure, looks: dict[str, Look], columns: int = 4) -> None:
    """One legend below all axes, of labels and how they look."""
    figure.legend(
        [Line2D([], [], **options) for options in looks.values()],
        [*looks],
        loc="outside lower center",
        ncols=min(columns, len(looks)),
        frameon=False,
        fontsize=9,
        labelcolor=LIGHT["ink"],
    )


def svg_text(figure: Figure) -> str:
    """The figure as SVG without a background; coordinates to a hundredth of a point."""
    # Lay out once, for the PNG, whose letters are wider than those of the SVG.
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    buffer = io.BytesIO()
    # A fixed salt and no date: the same results give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "amortes", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})

    def shorten(match: re.Match[str]) -> str:
        return re.sub(r"(\.\d\d)\d+", r"\1", match[0])

    return re.sub(r' (d|x|y)="[^"]*"', shorten, buffer.getvalue().decode())


def inline_svg(svg: str, name: str, description: str) -> str:
    """An `<svg>` for a page: colours as CSS variables, ids that start with name.

    Its width in points is the CSS variable --points, so that letters have one size on the page.
    """
    text = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for variable, (light, _) in COLOURS.items():
        text = re.sub(light, f"var(--{variable})", text, flags=re.IGNORECASE)
    label = f'role="img" aria-label="{markupsafe.escape(description)}"'
    head, end, rest = text.partition(">")
    head = re.sub(r' height="[^"]*"', "", head)
    head = re.sub(r' width="([0-9.]+)pt"', rf' {label} style="--points: \1"', head)
    return head + end + rest
