"""The few statistics of the report.

log regret       log10 max(regret, FLOOR); averaged after the logarithm
standard error   s / sqrt(n), s with n - 1; undefined for one sample
win rate         mean over pairs of 1 (better), 1/2 (equal), 0 (worse)
its interval     Wilson, E. B. (1927): Probable inference, JASA 22, 209-212; for independent pairs
with clusters    percentiles of the rate over clusters drawn with replacement (bootstrap)
difference       t = difference of means / its standard error, clear if beyond the quantile of
                 Student's t
  paired         SE that of the n differences, n - 1 degrees of freedom
  unpaired       SE^2 = SE_1^2 + SE_2^2, degrees of freedom by Welch (1947), Biometrika 34, 28-35
"""

import math

import numpy as np
from scipy.stats import norm, t

from amortes.bench.report.results import Floats

FLOOR = 1e-10
"""Regrets below count as this: the best values of the problems are not known better."""
LEVEL = 0.95
RESAMPLES = 10_000


def log_regret(regret: Floats) -> Floats:
    """log10 of the regret, floored; NaN stays NaN."""
    return np.asarray(np.log10(np.maximum(regret, FLOOR)))


def mean_and_error(samples: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, standard error and count over the first axis, without NaN; `n x k`: three `k`.

    The mean of nothing and the error of fewer than two samples are NaN.
    """
    known = ~np.isnan(samples)
    count = known.sum(0)
    total = np.where(known, samples, 0.0).sum(0)
    mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    squares = (np.where(known, samples - mean, 0.0) ** 2).sum(0)
    error = np.sqrt(
        np.divide(squares, count * (count - 1.0), out=np.full(count.shape, np.nan), where=count > 1)
    )
    return mean, error, count.astype(np.float64)


def wilson(points: float, n: int) -> tuple[float, float]:
    """Interval of a proportion: `points` successes (ties count one half) among n pairs."""
    if n == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.5 + LEVEL / 2))
    rate, width = points / n, z * z / n
    middle = (rate + width / 2) / (1 + width)
    half = math.sqrt(rate * (1 - rate) * width + width * width / 4) / (1 + width)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(points: Floats, n: Floats) -> tuple[float, float]:
    """Interval of the win rate sum(points) / sum(n), of k clusters with n pairs each, `k`."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(n), size=(RESAMPLES, len(n)))
    rates = points[drawn].sum(1) / n[drawn].sum(1)
    low, high = np.quantile(rates, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)


def student(freedom: float) -> float:
    """The |t| beyond which a difference is clear; NaN without degrees of freedom."""
    return float(t.ppf(0.5 + LEVEL / 2, freedom))


def welch(errors: tuple[float, float], counts: tuple[float, float]) -> float:
    """The |t| beyond which two means with these standard errors and sample sizes clearly differ.

    NaN if that cannot be known, as with a single sample.
    """
    if not min(counts) > 1 or not max(errors) > 0:  # written so that NaN fails
        return math.nan
    a, b = (error**2 for error in errors)
    freedom = (a + b) ** 2 / (a**2 / (counts[0] - 1) + b**2 / (counts[1] - 1))
    return student(freedom)


def win_points(ours: Floats, theirs: Floats) -> Floats:
    """1, 1/2 or 0 for each pair of scores, higher is better."""
    return np.where(ours > theirs, 1.0, np.where(ours == theirs, 0.5, 0.0))
