"""Colours of figures, light and dark, that are told apart with any colour vision.

After Okabe & Ito (Color Universal Design, 2008); markers differ, too.
"""

from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from amortes.errors import ConfigError

StyleName = Literal["light", "dark"]


@dataclass(frozen=True)
class Style:
    """The colours of one kind of figure."""

    background: str
    text: str
    faint: str
    """Of grids and of what is not allowed."""
    result: str
    model: str
    """Of what the model expects, and of the best so far."""
    failed: str
    infeasible: str
    recommended: str


STYLES = {
    "light": Style(
        background="#ffffff",
        text="#222222",
        faint="#d9d9d9",
        result="#666666",
        model="#0072B2",
        failed="#D55E00",
        infeasible="#AA4499",
        recommended="#009E73",
    ),
    "dark": Style(
        background="#15181d",
        text="#e8e8e8",
        faint="#3b4149",
        result="#a9b0b8",
        model="#56B4E9",
        failed="#F0803C",
        infeasible="#E08CCB",
        recommended="#2FD3A0",
    ),
}


def style_of(name: Any) -> Style:
    """The style of this name, or a `ConfigError`."""
    if not isinstance(name, str) or name not in STYLES:
        raise ConfigError(f"style: must be one of {', '.join(STYLES)}, not {name!r}.")
    return STYLES[name]


def dress(ax: Axes, style: Style, *, grid: Literal["both", "x", "y"] | None = "both") -> None:
    """Give axes their colours; ticks that are made later have them, too."""
    ax.set_facecolor(style.background)
    ax.tick_params(which="both", colors=style.text, labelsize="small")
    for side, spine in ax.spines.items():
        spine.set_color(style.text)
        spine.set_linewidth(0.7)
        spine.set_visible(side in ("left", "bottom"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(style.text)
        axis.get_offset_text().set_color(style.text)
    for title in (ax.title, ax._left_title, ax._right_title):  # type: ignore[attr-defined]
        title.set_color(style.text)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(True, axis=grid, color=style.faint, lw=0.6, alpha=0.7)


def hatched(colour: str, **look: Any) -> Rectangle:
    """An area that the space does not allow, for legends."""
    return Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=colour, hatch="////", lw=0.0, **look)
