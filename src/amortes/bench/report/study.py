"""What a report is made from, and what its sections are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from matplotlib.figure import Figure

from amortes.bench.report.curves import Curves, all_curves
from amortes.bench.report.names import FAMILIES, family
from amortes.bench.report.published import Published
from amortes.bench.report.results import Results
from amortes.bench.report.style import svg_text
from amortes.bench.report.tables import Table


@dataclass(frozen=True)
class Study:
    """The results of sweeps, and what was published."""

    results: Results
    published: Published = field(default_factory=Published)
    traces: Results | None = None
    """A sweep by networks that were trained on different traces, if there is one."""
    timed: Results | None = None
    """A sweep to take times from, one that ran alone; without one, `results`."""

    @property
    def times(self) -> Results:
        """The sweep to take times from."""
        return self.timed or self.results

    @cached_property
    def curves(self) -> Curves:
        """All problems and methods."""
        return all_curves(self.results, self.results.problems)

    @cached_property
    def families(self) -> dict[str, list[str]]:
        """The problems of each family that has any."""
        found = {name: [p for p in self.results.problems if family(p) == name] for name in FAMILIES}
        return {name: problems for name, problems in found.items() if problems}

    def curves_of(self, name: str) -> Curves:
        """The curves of a family."""
        return {p: self.curves[p] for p in self.families.get(name, ()) if p in self.curves}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure, what it shows, and its numbers."""

    name: str
    figure: Figure
    caption: str
    data: Table

    @cached_property
    def svg(self) -> str:
        """The figure as SVG without a background."""
        return svg_text(self.figure)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page; `reading` is the one sentence that says how to read it."""

    name: str
    title: str
    reading: str
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()

    @property
    def empty(self) -> bool:
        """Whether the results have nothing for it."""
        return not self.drawings and not self.tables


def join(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names)
