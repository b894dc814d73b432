import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from amortes.bench.report.statistics import bootstrap, student, welch, with_rates


def wilson(points: float, n: int) -> tuple[float, float]:
    (row,) = with_rates(pd.DataFrame({"points": [points], "pairs": [n]})).to_dict("records")
    assert row["rate"] == points / n
    return row["low"], row["high"]


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (3, 10), (29, 30), (30, 30), (1, 1)])
def test_wilson_agrees_with_scipy(wins: int, n: int) -> None:
    expected = stats.binomtest(wins, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(wins, n), expected, atol=1e-12)


def test_ties_lie_between() -> None:
    below, tie, above = (wilson(points, 10) for points in (4.0, 4.5, 5.0))
    assert below < tie < above


def test_the_bootstrap_is_wider_than_for_independent_pairs() -> None:
    """Half of the problems are always won, the others never: 400 pairs are but 10."""
    clusters = pd.DataFrame({"points": [40.0, 0.0] * 5, "pairs": 40})
    low, high = bootstrap(clusters)
    assert low < wilson(200, 400)[0] - 0.1
    assert high > wilson(200, 400)[1] + 0.1
    # A draw has a binomial number of problems that are won.
    assert (low, high) == pytest.approx(
        stats.binom(10, 0.5).interval(0.95) / np.array(10.0), abs=0.01
    )
    assert bootstrap(clusters) == (low, high)


@pytest.mark.parametrize("counts", [(3, 3), (3, 30), (10, 30), (2, 200)])
def test_welch_agrees_with_scipy(counts: tuple[int, int]) -> None:
    errors = 0.3, 0.1
    edge = welch(errors, counts) * math.hypot(*errors)
    deviations = [error * math.sqrt(count) for error, count in zip(errors, counts, strict=True)]
    p = stats.ttest_ind_from_stats(
        edge, deviations[0], counts[0], 0.0, deviations[1], counts[1], equal_var=False
    ).pvalue
    assert p == pytest.approx(0.05)


def test_welch_needs_two_samples_and_an_error() -> None:
    assert math.isnan(welch((math.nan, 0.1), (1, 3)))
    assert math.isnan(welch((0.1, 0.1), (3, math.nan)))
    assert math.isnan(welch((0.0, 0.0), (3, 3)))
    assert welch((0.0, 0.1), (3, 4)) == pytest.approx(stats.t(3).ppf(0.975))


@pytest.mark.parametrize("n", [2, 3, 10])
def test_student_agrees_with_scipy(n: int) -> None:
    samples = np.random.default_rng(n).normal(1.0, 2.0, n)
    low = samples.mean() - student(n - 1) * stats.sem(samples)
    assert low == pytest.approx(stats.ttest_1samp(samples, 0.0).confidence_interval().low)
    assert math.isnan(student(0))
