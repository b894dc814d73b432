"""What a report is made from, and what it consists of: sections with drawings and tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.report.comparisons import count_wins
from amortes.bench.report.contents import CONTENTS, FIGURES, TABLES
from amortes.bench.report.curves import problem_curves
from amortes.bench.report.names import GROUPS, group_of
from amortes.bench.report.published import Published
from amortes.bench.report.results import Results
from amortes.bench.report.style import svg_text

ALL = "all problems"


def records(rows: pd.DataFrame) -> Iterator[Any]:
    """Named tuples of the rows."""
    return iter(rows.itertuples(index=False))


@dataclass(frozen=True, eq=False)
class Study:
    """The results of sweeps, and what was published."""

    results: Results
    published: Published = field(default_factory=Published)
    traces: Results | None = None
    """A sweep by networks that were trained on different traces, if there is one."""
    timed: Results | None = None
    """A sweep to take times from, one that ran alone; without one, `results`."""

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The problems of each group that has any."""
        problems = self.results.problems
        found = {name: [p for p in problems if group_of(p) == name] for name in GROUPS}
        return {name: chosen for name, chosen in found.items() if chosen}

    @property
    def titled_groups(self) -> dict[str, list[str]]:
        """Groups of problems by their titles, and all of them together if there are several."""
        found = {GROUPS[name]: problems for name, problems in self.groups.items()}
        return {**found, ALL: self.results.problems} if len(found) > 1 else found

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Those of all problems and methods."""
        return problem_curves(self.results.rows)

    def curves_of(self, *groups: str) -> pd.DataFrame:
        """The curves of groups of problems."""
        problems = [problem for name in groups for problem in self.groups.get(name, ())]
        return self.curves[self.curves["panel"].isin(problems)]

    @cached_property
    def wins(self) -> pd.DataFrame:
        """Of all pairs of methods, see `count_wins`."""
        return count_wins(self.results)


@dataclass(frozen=True)
class Table:
    """Cells of text; **double asterisks** emphasise one. Without a title, that of the contents."""

    name: str
    cells: pd.DataFrame
    title: str = ""
    words: Mapping[str, object] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The title with its gaps filled."""
        return self.title or CONTENTS[TABLES[self.name]]["tables"][self.name].format(**self.words)

    @property
    def left(self) -> list[bool]:
        """For each column, whether it holds text; the first one always does."""
        bare = self.cells.apply(lambda column: column.str.removeprefix("**").str[:1].str.isalpha())
        return [True, *bare.any().iloc[1:]]

    def markdown(self) -> str:
        """The table with its title in bold above; text is on the left, numbers on the right."""
        rows = [self.cells.columns, *records(self.cells)]
        head, *body = ("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows)
        sides = "|" + "".join("---|" if left else "---:|" for left in self.left)
        return "\n".join([f"**{self.heading}**", "", head, sides, *body]) + "\n"

    def csv(self) -> str:
        """Comma-separated values, without asterisks."""
        bare = self.cells.replace(r"^\*\*(.*)\*\*$", r"\1", regex=True)
        return str(bare.to_csv(index=False, lineterminator="\n"))


@dataclass(frozen=True)
class Drawing:
    """A figure and its numbers."""

    name: str
    figure: Figure
    data: pd.DataFrame
    digits: str = "%.6g"

    @property
    def caption(self) -> str:
        """What it shows."""
        return str(CONTENTS[FIGURES[self.name]]["figures"][self.name])

    @cached_property
    def svg(self) -> str:
        """The figure as SVG without a background."""
        return svg_text(self.figure)

    def csv(self) -> str:
        """Comma-separated values with a header."""
        return str(self.data.to_csv(index=False, float_format=self.digits, lineterminator="\n"))


@dataclass(frozen=True)
class Section:
    """What the results have for a section of the contents."""

    name: str
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    words: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """For readers."""
        return str(CONTENTS[self.name]["title"])

    @property
    def reading(self) -> str:
        """The one sentence that says how to read it."""
        return str(CONTENTS[self.name]["reading"]).format(**self.words)

    @property
    def empty(self) -> bool:
        """Whether the results have nothing for it."""
        return not self.drawings and not self.tables
