"""Colours, lines, and saving figures: as files, and as SVG that follows the page's theme.

Colour says which acquisition a network uses, or which baseline a method is; GPs are grey. Solid
lines were measured here, dashed ones are published. Colours are after Okabe & Ito
(2008), told apart with any colour vision; markers repeat what they say.
"""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import markupsafe
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amortes.bench.methods.registry import METHODS
from amortes.bench.report.names import parse_method
from amortes.files import atomic_path, write_text

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
    "auto": "ink",
    "pes": "blue",
    "mes": "vermillion",
    "jes": "green",
    "ei": "purple",
    "logei": "wine",
}
MARKERS = {"auto": "*", "pes": "o", "mes": "s", "jes": "^", "ei": "D", "logei": "v", "gibbon": "s"}
DPI = 150
DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.2))


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a method is drawn."""

    colour: str
    line: Any = "-"
    width: float = 1.6
    marker: str = ""
    band: bool = True
    hollow: bool = False

    def options(self) -> dict[str, Any]:
        """For Axes.plot."""
        return {
            "color": self.colour,
            "ls": self.line,
            "lw": self.width,
            "marker": self.marker,
            "ms": 4.0,
            "mfc": "none" if self.hollow else self.colour,
        }


def look(name: str) -> Look:
    """The appearance of a method in every figure."""
    method = parse_method(name)
    marker = MARKERS.get(method.acquisition, "")
    colour, grey = LIGHT[OURS.get(method.acquisition, "grey")], LIGHT["grey"]
    match method.model:
        case "ours" if method.weights:
            return Look(colour=colour, marker=marker, line="-.", width=1.3, hollow=True)
        case "ours":
            return Look(colour=colour, marker=marker)
        case "fb":
            return Look(colour=grey, marker=marker, width=1.4)
        case "map":
            return Look(colour=LIGHT["brown"], marker=marker, line=DOTTED, width=1.5)
        case "paper":
            return Look(colour=colour, line=DASHED, width=1.2, band=False)
        case "paper:fb":
            line: dict[str, Any] = {"line": DASHED, "width": 1.2, "band": False}
            return Look(colour=grey, marker=marker, hollow=True, **line)
    colour, marker = "silver", "*"
    if entry := METHODS.get(name):
        colour, marker = entry.colour, entry.marker
    return Look(colour=LIGHT[colour], marker=marker, line="-.", width=1.3)


def look_apart(name: str) -> Look:
    """The appearance where all acquisitions share a panel: fully Bayesian GPs have colours, too."""
    method = parse_method(name)
    if method.model not in ("fb", "paper:fb"):
        return look(name)
    return Look(
        colour=LIGHT[OURS[method.acquisition]],
        line=DOTTED,
        width=1.2,
        band=method.model == "fb",
        marker=MARKERS[method.acquisition],
        hollow=True,
    )


def tidy(ax: Axes) -> None:
    """The common look of all axes."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LIGHT["grey"])
    ax.grid(color=LIGHT["faint"], lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=LIGHT["ink"], labelsize=8)
    ax.tick_params(length=3)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_color(LIGHT["ink"])
        text.set_fontsize(9)


def legend(figure: Figure, handles: list[Any], labels: list[str], columns: int) -> None:
    """One legend below all axes."""
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(columns, len(labels)),
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


def save(figure: Figure, svg: str, folder: Path, name: str) -> list[Path]:
    """Write PNG and SVG on white."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with atomic_path(paths[0]) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI)
    write_text(paths[1], svg.replace("<svg ", '<svg style="background: white" ', 1))
    return paths


def inline_svg(svg: str, name: str, description: str) -> str:
    """An `<svg>` for a page: colours as CSS variables, ids that start with name.

    Its width in points is the CSS variable --points, so that letters have one size on the page.
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    for variable, (light, _) in COLOURS.items():
        text = re.sub(light, f"var(--{variable})", text, flags=re.IGNORECASE)
    head, end, rest = text.partition(">")
    points = re.search(r' width="([0-9.]+)pt"', head)
    assert points is not None  # matplotlib always says so
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    label = (
        f'role="img" aria-label="{markupsafe.escape(description)}" style="--points: {points[1]}"'
    )
    head = head.replace("<svg", f"<svg {label}", 1)
    return head + end + rest
