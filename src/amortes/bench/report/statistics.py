"""The few statistics of the report that SciPy does not have in this form.

win rate         mean over pairs of 1 (better), 1/2 (equal), 0 (worse)
its interval     Wilson, E. B. (1927): Probable inference, JASA 22, 209-212; for independent pairs
with clusters    percentiles of the rate over clusters drawn with replacement (bootstrap)
difference       t = difference of means / its standard error, clear if beyond the quantile of
                 Student's t
  paired         SE that of the n differences, n - 1 degrees of freedom
  unpaired       SE^2 = SE_1^2 + SE_2^2, degrees of freedom by Welch (1947), Biometrika 34, 28-35
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95


def with_rates(wins: pd.DataFrame) -> pd.DataFrame:
    """Add the win rate and its Wilson interval (`low`, `high`) to `points` among `pairs`."""
    rate = wins["points"] / wins["pairs"]
    width = float(stats.norm.ppf(0.5 + LEVEL / 2)) ** 2 / wins["pairs"]
    middle = (rate + width / 2) / (1 + width)
    half = np.sqrt(rate * (1 - rate) * width + width**2 / 4) / (1 + width)
    return wins.assign(
        rate=rate, low=(middle - half).clip(lower=0.0), high=(middle + half).clip(upper=1.0)
    )


def bootstrap(clusters: pd.DataFrame) -> tuple[float, float]:
    """Interval of the win rate sum(points) / sum(pairs), with a row for each cluster."""

    def rate(points: Any, pairs: Any, axis: int) -> Any:
        return points.sum(axis) / pairs.sum(axis)

    found = stats.bootstrap(
        (clusters["points"].to_numpy(float), clusters["pairs"].to_numpy(float)),
        rate,
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=LEVEL,
        n_resamples=10_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def student(freedom: float) -> float:
    """The |t| beyond which a difference is clear; NaN without degrees of freedom."""
    return float(stats.t.ppf(0.5 + LEVEL / 2, freedom))


def welch(errors: tuple[float, float], counts: tuple[float, float]) -> float:
    """The |t| beyond which two means with these standard errors and sample sizes clearly differ.

    NaN if that cannot be known, as with a single sample.
    """
    if not min(counts) > 1 or not max(errors) > 0:  # written so that NaN fails
        return math.nan
    a, b = (error**2 for error in errors)
    return student((a + b) ** 2 / (a**2 / (counts[0] - 1) + b**2 / (counts[1] - 1)))
