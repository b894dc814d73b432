"""Ours beside each rival with the same acquisition, problem by problem.

    t = (ours - theirs, signed so that positive is better for us) / sqrt(SE_ours^2 + SE_theirs^2)

Better or worse is what Welch's t-test calls different, two-sided at 95%: |t| beyond the quantile of
Student's t whose degrees of freedom follow from the seeds of both sides, 2.0 with many seeds and
2.8 with three each. All else is level. Published curves come from other seeds and machines, so they
are treated as independent; for pairs that share seeds this is conservative.
"""

import math
from dataclasses import dataclass

import numpy as np

from amortes.bench.report.curves import Curve, Curves, higher_is_better, metric
from amortes.bench.report.names import is_ours, parse_method, same_acquisition
from amortes.bench.report.published import Published
from amortes.bench.report.statistics import welch

RIVALS = ("fb", "map", "paper", "paper:fb")
RULE = "Welch's t-test over seeds (two-sided, 95%)"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One of our methods against one rival on one problem."""

    problem: str
    ours: str
    theirs: str
    model: str  # of the rival
    iteration: int
    metric: str
    our_mean: float
    our_error: float
    our_seeds: float
    their_mean: float
    their_error: float
    their_seeds: float

    @property
    def difference(self) -> float:
        """Positive if ours is better, in units of the metric."""
        sign = 1.0 if higher_is_better(self.metric) else -1.0
        return sign * (self.our_mean - self.their_mean)

    @property
    def t(self) -> float:
        """Difference in standard errors; NaN if an error is unknown."""
        scale = math.hypot(self.our_error, self.their_error)
        return self.difference / scale if scale > 0 else math.nan

    @property
    def clear(self) -> float:
        """The |t| above which the means count as different; NaN if that is unknown."""
        return welch((self.our_error, self.their_error), (self.our_seeds, self.their_seeds))

    @property
    def verdict(self) -> str:
        """better, level, worse; unknown with a single seed."""
        if math.isnan(self.t) or math.isnan(self.clear):
            return "unknown"
        return "level" if abs(self.t) <= self.clear else ("better" if self.t > 0 else "worse")


def standings(curves: Curves, published: Published) -> list[Standing]:
    """All comparisons that the results and the published curves allow, at the last common step."""
    found = []
    for problem in curves:
        candidates = {**curves[problem], **published.curves.get(problem, {})}
        for name in filter(is_ours, curves[problem]):
            for model in RIVALS:
                theirs = same_acquisition(candidates, parse_method(name).acquisition, model)
                step = _last_common(candidates[name], candidates[theirs]) if theirs else None
                if theirs is None or step is None:
                    continue
                our, their = (_sample(candidates[method], step) for method in (name, theirs))
                found.append(
                    Standing(
                        problem=problem,
                        ours=name,
                        theirs=theirs,
                        model=model,
                        iteration=step,
                        metric=metric(problem),
                        our_mean=our[0],
                        our_error=our[1],
                        our_seeds=our[2],
                        their_mean=their[0],
                        their_error=their[1],
                        their_seeds=their[2],
                    )
                )
    return found


def _sample(curve: Curve, step: int) -> tuple[float, float, float]:
    """Mean, standard error and number of seeds after so many observations."""
    place = int(np.searchsorted(curve.iteration, step))
    return float(curve.mean[place]), float(curve.error[place]), float(curve.count[place])


def _last_common(a: Curve, b: Curve) -> int | None:
    common = set(a.iteration.tolist()) & set(b.iteration.tolist())
    return max(common, default=None)
