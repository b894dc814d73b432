"""A figure that notebooks show, with its legend above the axes; its colours, light and dark.

Colours are told apart with any colour vision, after Okabe & Ito (Color Universal Design, 2008);
markers differ, too.
"""

import io
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure

from amortes.errors import ConfigError
from amortes.optimiser.text import printable

LETTERS = 14.0
"""Letters of a legend in an inch."""
LINE = 0.19
"""Inches of a line of a legend."""
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


class Picture(Figure):
    """A Matplotlib figure that is shown as the value of a notebook's cell, without pyplot."""

    def __init__(self, width: float, height: float, style: Style) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor=style.background)
        self.style = style

    def legend_above(self, *more: Artist, without: str = "") -> None:
        """A legend above all axes, where it covers nothing, of all that has a label, and `more`.

        The first of equal labels counts. It is read line by line, and the figure is made higher for
        all lines but the first.
        """
        handles = [*(h for ax in self.axes for h in ax.get_legend_handles_labels()[0]), *more]
        first: dict[str, Artist] = {}
        for handle in handles:
            first.setdefault(str(handle.get_label()), handle)
        chosen = [handle for label, handle in first.items() if label != without]
        if not chosen:
            return
        widths = [len(str(handle.get_label())) + 7 for handle in chosen]
        columns = _columns(widths, self.get_figwidth() * LETTERS)
        self.set_figheight(self.get_figheight() + LINE * ((len(chosen) - 1) // columns))
        self.legend(
            handles=[handle for i in range(columns) for handle in chosen[i::columns]],
            loc="outside upper left",
            ncols=columns,
            frameon=False,
            fontsize="small",
            labelcolor=self.style.text,
        )

    def colour_bar(self, drawn: Any, ax: Axes, **look: Any) -> Colorbar:
        """The colours of what was drawn, beside its axes."""
        bar = self.colorbar(drawn, ax=ax, **look)
        bar.ax.tick_params(which="both", colors=self.style.text, labelsize="small")
        bar.ax.yaxis.get_offset_text().set_color(self.style.text)
        bar.outline.set_edgecolor(self.style.faint)
        return bar

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


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


def _columns(widths: Sequence[int], room: float) -> int:
    """The most columns for which there is room, if lines are filled with these widths."""
    for columns in range(len(widths), 1, -1):
        if sum(max(widths[i::columns]) for i in range(columns)) <= room:
            return columns
    return 1


def label(value: Any, most: int = 30) -> str:
    """A name or a value as the text of a figure: in one line, cut in the middle if it is long.

    Dollar signs begin no formula.
    """
    text = _line(value) or '""'
    if len(text) > most:
        tail = most // 3
        text = f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"
    return text.replace("$", r"\$")


def labels(values: Sequence[Any], most: int = 30) -> list[str]:
    """The labels of several values that differ.

    If cutting makes any of them equal, the words that all begin and end with are cut instead.
    """
    texts = [label(value, most) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    lines = [_line(value) for value in values]
    start = len(_shared_words(lines))
    rest = [line[start:][::-1] for line in lines]
    end = len(_shared_words(rest))
    before, after = "…" * (start > 0), "…" * (end > 0)
    return [label(f"{before}{text[end:][::-1]}{after}", most) for text in rest]


def _line(value: Any) -> str:
    """The value in one line of printable characters."""
    return "".join(c if c.isprintable() else " " for c in printable(str(value)))


def _shared_words(texts: Sequence[str]) -> str:
    """What all texts begin with, without the word, perhaps cut, that this ends with."""
    columns = zip(*texts, strict=False)
    shared = "".join(c[0] for c in itertools.takewhile(lambda c: len(set(c)) == 1, columns))
    return re.sub(r"[^\W_]*$", "", shared)
