"""Ours beside each rival with the same acquisition, problem by problem, and how often it is better.

    t = gain / its standard error,   gain: ours - theirs, signed so that positive is better for us

Better or worse is what a t-test calls different, two-sided at 95%: |t| beyond the quantile of
Student's t. All else is level.

Methods run here share initial points and noise with ours, seed by seed. They are compared on the
seeds that both have, by a paired test: the error is that of the differences, one for each seed, and
the quantile 2.3 with ten seeds and 4.3 with three. Published curves come from other seeds and
machines. There all our seeds count, and Welch's test takes the two sides as independent.

Ours may beat a published curve for reasons that have nothing to do with its network. So families of
problems are counted apart, and a plain GP that was run here stands beside the same curves.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from amortes.bench.report.curves import Curve, align, higher_is_better, metric, series
from amortes.bench.report.names import family, is_ours, parse_method, same_acquisition
from amortes.bench.report.statistics import mean_and_error, student, welch
from amortes.bench.report.study import Study

FAMILIES = ("synthetic", "noise", "lcbench")
HERE = ("fb", "map")
PUBLISHED = ("paper", "paper:fb")
BASELINE = "map-logei"
PAIRED = "a paired t-test over common seeds"
WELCH = "Welch's t-test over seeds"
RULE = f"{PAIRED} (methods run here) or {WELCH} (published curves), two-sided at 95%"


class Sample(NamedTuple):
    """A mean over seeds."""

    mean: float
    error: float
    seeds: float


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method against one rival on one problem."""

    problem: str
    ours: str
    theirs: str
    iteration: int
    our: Sample
    their: Sample
    gain: float  # positive if ours is better, in units of the metric
    error: float  # of the gain
    clear: float  # the |t| above which the means count as different; NaN if that is unknown

    @property
    def model(self) -> str:
        """That of the rival."""
        return parse_method(self.theirs).model

    @property
    def t(self) -> float:
        """Gain in standard errors; NaN if these are unknown or zero."""
        return self.gain / self.error if self.error > 0 else math.nan

    @property
    def verdict(self) -> str:
        """better, level, worse; unknown with a single seed."""
        least = self.clear * self.error  # zero if all seeds agree: any gain is clear then
        if math.isnan(self.gain) or math.isnan(least):
            return "unknown"
        return "level" if abs(self.gain) <= least else ("better" if self.gain > 0 else "worse")


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts `better : level : worse` than a rival on a family of problems."""

    family: str
    model: str  # of the rival
    ours: str  # with all acquisitions
    ei: str  # of these, with EI or LogEI; empty if there are none
    baseline: str  # of BASELINE beside a published EI; empty if there is none

    @property
    def test(self) -> str:
        """How means are compared."""
        return PAIRED if self.model in HERE else WELCH


def standings(study: Study) -> list[Standing]:
    """All comparisons of ours that the results and the published curves allow.

    Each is after as many observations as both sides have.
    """
    return _standings(study, is_ours, (*HERE, *PUBLISHED))


def tallies(study: Study) -> list[Tally]:
    """The counts for each rival and family, where there is something to count."""
    ours = standings(study)
    baseline = _standings(study, BASELINE.__eq__, PUBLISHED)
    found = []
    for model in (*HERE, *PUBLISHED):
        for name in FAMILIES:
            beside, plain = (
                [one for one in each if one.model == model and family(one.problem) == name]
                for each in (ours, baseline)
            )
            ei = [one for one in beside if parse_method(one.ours).column == "ei"]
            if beside:
                found.append(
                    Tally(
                        family=name,
                        model=model,
                        ours=_count(beside),
                        ei=_count(ei),
                        baseline=_count(plain),
                    )
                )
    return found


def _count(found: Sequence[Standing]) -> str:
    count = Counter(one.verdict for one in found)
    return f"{count['better']} : {count['level']} : {count['worse']}" if found else ""


def _standings(
    study: Study, chosen: Callable[[str], bool], models: Sequence[str]
) -> list[Standing]:
    """Each chosen method beside each model with its acquisition."""
    found = []
    for problem in (problem for name in FAMILIES for problem in study.curves_of(name)):
        here, published = study.curves[problem], study.published.curves.get(problem, {})
        for ours in filter(chosen, here):
            for model in models:
                acquisition = parse_method(ours).acquisition
                theirs = same_acquisition([*here, *published], acquisition, model)
                if theirs is not None:
                    compare = _paired if model in HERE else _independent
                    found.append(compare(study, problem, ours, theirs))
    return [one for one in found if one is not None]


def _paired(study: Study, problem: str, ours: str, theirs: str) -> Standing | None:
    """On the seeds that both have, after as many observations as all of these runs have."""
    sides = [study.results.seeds(problem, method) for method in (ours, theirs)]
    common = sorted(sides[0].keys() & sides[1].keys())
    if not common:
        return None
    iterations, table = align(
        series(runs[seed], metric(problem)) for runs in sides for seed in common
    )
    complete = np.flatnonzero(~np.isnan(table).any(0))
    if not len(complete):
        return None
    a, b = table[:, complete[-1]].reshape(2, -1)
    our, their, difference = (
        Sample(*map(float, column))
        for column in zip(*mean_and_error(np.stack([a, b, a - b], axis=1)), strict=True)
    )
    return Standing(
        problem=problem,
        ours=ours,
        theirs=theirs,
        iteration=int(iterations[complete[-1]]),
        our=our,
        their=their,
        gain=_gain(problem, difference.mean),
        error=difference.error,
        clear=student(difference.seeds - 1),
    )


def _independent(study: Study, problem: str, ours: str, theirs: str) -> Standing | None:
    """With all our seeds, at the last iteration that both curves have."""
    a, b = study.curves[problem][ours], study.published.curves[problem][theirs]
    common = np.intersect1d(a.iteration, b.iteration)
    if not len(common):
        return None
    our, their = (_sample(curve, int(common[-1])) for curve in (a, b))
    return Standing(
        problem=problem,
        ours=ours,
        theirs=theirs,
        iteration=int(common[-1]),
        our=our,
        their=their,
        gain=_gain(problem, our.mean - their.mean),
        error=math.hypot(our.error, their.error),
        clear=welch((our.error, their.error), (our.seeds, their.seeds)),
    )


def _gain(problem: str, difference: float) -> float:
    return difference if higher_is_better(metric(problem)) else -difference


def _sample(curve: Curve, step: int) -> Sample:
    place = int(np.searchsorted(curve.iteration, step))
    return Sample(float(curve.mean[place]), float(curve.error[place]), float(curve.count[place]))
