"""What a report is made from, and what its sections are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from amortes.bench.report.curves import Curves, all_curves
from amortes.bench.report.names import FAMILIES, canonical, family
from amortes.bench.report.published import Published, read_curve
from amortes.bench.report.results import Results
from amortes.bench.report.style import svg_text
from amortes.bench.report.tables import Table
from amortes.errors import FileError
from amortes.files import read_json


@dataclass(frozen=True)
class Study:
    """The results of a sweep, what was published, and a trace ablation if there is one."""

    results: Results
    published: Published = field(default_factory=Published)
    traces: Curves = field(default_factory=dict)

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


def load_traces(path: Path) -> Curves:
    """A trace ablation: {problem: {"jes": curve, "jes@uniform": curve, ...}}.

    A curve is {"mean": [...], "sem": [...], "iter": [...]} in log10 inference regret.
    """
    content = read_json(path)
    try:
        return {
            canonical(problem): {name: read_curve(curve) for name, curve in methods.items()}
            for problem, methods in content.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} is not a trace ablation ({error!r}): expected "
            '{"branin": {"jes": {"mean": [...], "sem": [...]}, "jes@uniform": ...}}.'
        ) from error


def join(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names)
