"""Win rates: how often one method ends with a better recommendation than another.

Pairs are (problem, seed), where both methods start from the same points; they are compared after as
many observations as the shorter of the two runs has.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from amortes.bench.report.names import is_ours, parse_method, same_acquisition
from amortes.bench.report.results import Results, Run
from amortes.bench.report.statistics import wilson, win_points


@dataclass(frozen=True, kw_only=True)
class Wins:
    """Points of a method against another: 1 for a win, 1/2 for a tie."""

    points: float
    n: int

    @property
    def rate(self) -> float:
        """Share of the pairs that were won; NaN without pairs."""
        return self.points / self.n if self.n else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval; it takes the pairs as independent."""
        return wilson(self.points, self.n)

    @property
    def text(self) -> str:
        """The rate, its interval and the number of pairs."""
        low, high = self.interval
        return f"{self.rate:.2f} [{low:.2f}, {high:.2f}] ({self.n})" if self.n else ""


def last_common(runs: Iterable[Run]) -> int:
    """The largest iteration that all runs have; 0 if there is none."""
    found = list(runs)
    first = min(run.last for run in found)
    if all(first in run.iteration for run in found):
        return first
    return max(set.intersection(*(set(run.iteration.tolist()) for run in found)), default=0)


def win_rate(results: Results, ours: str, theirs: str, problems: Iterable[str]) -> Wins:
    """A method against another on some problems."""
    scores = []
    for problem in problems:
        rivals = results.seeds(problem, theirs)
        for seed, run in results.seeds(problem, ours).items():
            if seed in rivals and (iteration := last_common((run, rivals[seed]))):
                scores.append((run.score_at(iteration), rivals[seed].score_at(iteration)))
    table = np.array(scores, dtype=np.float64).reshape(-1, 2)
    return Wins(points=float(win_points(table[:, 0], table[:, 1]).sum()), n=len(table))


def pooled(results: Results, pairs: Iterable[tuple[str, str]]) -> list[Wins]:
    """For each problem, all pairs of methods together; without problems where none was run."""
    compared = list(pairs)
    each = [
        [win_rate(results, ours, theirs, [problem]) for ours, theirs in compared]
        for problem in results.problems
    ]
    found = [Wins(points=sum(w.points for w in one), n=sum(w.n for w in one)) for one in each]
    return [wins for wins in found if wins.n]


def gp_pairs(results: Results) -> list[tuple[str, str]]:
    """Ours with the default weights, each with the GPs that have the same acquisition."""
    pairs = []
    for model in ("fb", "map"):
        for ours in filter(is_ours, results.methods):
            theirs = same_acquisition(results.methods, parse_method(ours).acquisition, model)
            pairs += [(ours, theirs)] if theirs else []
    return pairs
