"""Seconds per iteration: fitting, searching, and their sum, the wait for a suggestion.

All are means over iterations, seeds and the tasks of a panel. Two methods are compared over the
tasks, seeds and iterations that both have, since everything gets slower with more observations. The
recommendation is only needed for the protocol's regret and is not part of the total.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from amortes.bench.report.names import is_ours, panel, parse_method, same_acquisition
from amortes.bench.report.results import Floats, Ints, Results, Run


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Mean seconds per iteration of a method on a panel."""

    fit: float
    search: float
    recommend: float
    iterations: int  # that were averaged

    @property
    def total(self) -> float:
        """From new data to the next suggestion."""
        return self.fit + self.search


@dataclass(frozen=True, kw_only=True)
class SpeedUp:
    """Ours and a rival on one panel, over the same tasks, seeds and iterations."""

    panel: str
    ours: str
    theirs: str
    model: str
    last: int  # the last iteration that was compared
    our_time: Timing
    their_time: Timing

    @property
    def factor(self) -> float:
        """How many times faster ours is."""
        return self.their_time.total / self.our_time.total


def panels(results: Results) -> dict[str, list[str]]:
    """The problems of each panel."""
    found: dict[str, list[str]] = {}
    for problem in results.problems:
        found.setdefault(panel(problem), []).append(problem)
    return found


def timing(results: Results, method: str, problems: Iterable[str]) -> Timing | None:
    """A method's mean seconds on some problems; None if nothing was measured."""
    runs = [run for problem in problems for run in results.seeds(problem, method).values()]
    return _mean([run.seconds[np.isin(run.iteration, _timed(run))] for run in runs])


def speed_up(results: Results, name: str, ours: str, theirs: str) -> SpeedUp | None:
    """Ours against a rival on a panel; None if they share no measured iteration of a run."""
    sides: tuple[list[Floats], list[Floats]] = [], []
    last = 0
    for problem in panels(results)[name]:
        rivals = results.seeds(problem, theirs)
        for seed, run in results.seeds(problem, ours).items():
            if seed not in rivals:
                continue
            rival = rivals[seed]
            common = np.intersect1d(_timed(run), _timed(rival))
            last = max([last, *common.tolist()])
            for side, one in zip(sides, (run, rival), strict=True):
                side.append(one.seconds[np.isin(one.iteration, common)])
    our_time, their_time = map(_mean, sides)
    if our_time is None or their_time is None or our_time.total == 0:
        return None
    return SpeedUp(
        panel=name,
        ours=ours,
        theirs=theirs,
        model=parse_method(theirs).model,
        last=last,
        our_time=our_time,
        their_time=their_time,
    )


def _timed(run: Run) -> Ints:
    """The iterations whose fit and search were measured."""
    return run.iteration[~np.isnan(run.seconds[:, :2]).any(axis=1)]


def _mean(parts: Sequence[Floats]) -> Timing | None:
    """Of rows of fit, search and recommend; None if there are none."""
    seconds = np.concatenate(parts) if parts else np.empty((0, 3))
    if not len(seconds):
        return None
    fit, search, recommend = seconds.mean(0).tolist()
    return Timing(fit=fit, search=search, recommend=recommend, iterations=len(seconds))


def speed_ups(results: Results) -> list[SpeedUp]:
    """Each panel and acquisition of ours against the GPs, and against MAP GP + LogEI."""
    found = []
    for name, problems in panels(results).items():
        there = list(dict.fromkeys(m for problem in problems for m in results.on(problem)))
        for ours in filter(is_ours, there):
            acquisition = parse_method(ours).acquisition
            rivals = [same_acquisition(there, acquisition, model) for model in ("fb", "map")]
            for theirs in dict.fromkeys([*rivals, "map-logei"]):
                one = speed_up(results, name, ours, theirs) if theirs else None
                found += [one] if one else []
    return found
