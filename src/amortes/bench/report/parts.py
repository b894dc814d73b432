"""What a report is made from, and what it consists of: sections with drawings and tables.

A section is a function that yields its figures, tables and notes (plain sentences):

    @section("name", "Title", "One sentence that says how to read it.")
    def name(study: Study) -> Iterator[Part]: ...

`write.SECTIONS` lists them in the order of the page.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.report.curves import load_published, problem_curves
from amortes.bench.report.load import Results
from amortes.bench.report.names import group_of
from amortes.bench.report.style import DPI, svg_text
from amortes.files import atomic_path, write_text


@dataclass(frozen=True, eq=False)
class Study:
    """The results of sweeps, and what was published."""

    results: Results
    published: pd.DataFrame = field(default_factory=lambda: load_published()[:0])
    """Curves; those of networks that were trained on other traces have an @ in their names."""
    traces: Results | None = None
    """A sweep by networks that were trained on different traces, if there is one."""
    timed: Results | None = None
    """A sweep to take times from, one that ran alone; without one, `results`."""

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Those of all problems and methods."""
        return problem_curves(self.results.rows)

    def curves_of(self, *groups: str) -> pd.DataFrame:
        """The curves of groups of problems."""
        return self.curves[self.curves["panel"].map(group_of).isin(groups)]


@dataclass(frozen=True)
class Table:
    """Cells of text; **double asterisks** emphasise one."""

    name: str
    title: str
    cells: pd.DataFrame

    def markdown(self) -> str:
        """The table with its title in bold above; the first column is on the left."""
        sides = ["---", *["---:"] * (self.cells.shape[1] - 1)]
        rows = [[c.replace("|", "\\|") for c in row] for row in records(self.cells)]
        lines = [f"| {' | '.join(row)} |" for row in [[*self.cells], sides, *rows]]
        return "\n".join([f"**{self.title}**", "", *lines]) + "\n"

    def html(self) -> str:
        """The table for a page; all text is escaped."""
        with pd.option_context("display.max_colwidth", None):
            text = self.cells.to_html(index=False, border=0, justify="unset")
        return re.sub(r"\*\*(.*?)\*\*", r"<strong>\1</strong>", text)

    def csv(self) -> str:
        """Comma-separated values, without asterisks."""
        bare = self.cells.replace(r"^\*\*(.*)\*\*$", r"\1", regex=True)
        return str(bare.to_csv(index=False, lineterminator="\n"))

    def write(self, folder: Path) -> list[Path]:
        """Write the table as Markdown; returns where."""
        path = folder / "tables" / f"{self.name}.md"
        write_text(path, self.markdown())
        return [path]


@dataclass(frozen=True)
class Drawing:
    """A figure and its numbers."""

    name: str
    caption: str
    figure: Figure
    data: pd.DataFrame

    @cached_property
    def svg(self) -> str:
        """The figure as SVG without a background."""
        return svg_text(self.figure)

    def csv(self) -> str:
        """Comma-separated values with a header."""
        return str(self.data.to_csv(index=False, float_format="%.6g", lineterminator="\n"))

    def write(self, folder: Path) -> list[Path]:
        """Write PNG and SVG on white, and the numbers; returns where."""
        png, svg = (folder / "figures" / f"{self.name}.{kind}" for kind in ("png", "svg"))
        data = folder / "data" / f"{self.name}.csv"
        write_text(svg, self.svg.replace("<svg ", '<svg style="background: white" ', 1))
        with atomic_path(png) as temporary:
            self.figure.savefig(temporary, format="png", dpi=DPI)
        write_text(data, self.csv())
        return [png, svg, data]


Part = Drawing | Table | str


@dataclass(frozen=True)
class Section:
    """A section by the name that `--only` takes, with the one sentence that says how to read it."""

    name: str
    title: str
    reading: str
    make: Callable[[Study], Iterator[Part]]


def section(
    name: str, title: str, reading: str
) -> Callable[[Callable[[Study], Iterator[Part]]], Section]:
    """Make a section of a function that yields its parts."""
    return lambda make: Section(name, title, reading, make)


def records(rows: pd.DataFrame) -> Iterator[Any]:
    """Named tuples of the rows."""
    return iter(rows.itertuples(index=False))


def with_error(mean: float, error: float, digits: int = 2) -> str:
    """`-1.23 ± 0.04`; without the error if it is unknown, empty if the mean is."""
    if math.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def text_of(rows: pd.DataFrame, digits: int = 2) -> list[str]:
    """`mean ± standard_error` of each row; **bold** where the column `best` says so."""
    best = rows.get("best", pd.Series(False, rows.index))
    found = zip(rows["mean"], rows["standard_error"], best, strict=True)
    return [("**{}**" if b else "{}").format(with_error(m, e, digits)) for m, e, b in found]


def spread(rows: pd.DataFrame, down: list[str], across: str, cells: list[str]) -> pd.DataFrame:
    """A table of cells, one for each row; what is down and across, in the order of the rows."""
    wide = rows.assign(cell=cells).pivot(index=down, columns=across, values="cell")
    wide = wide.reindex(columns=rows[across].unique()).reset_index()
    return rows[down].drop_duplicates().merge(wide, on=down).fillna("").astype(str)
