import math

import numpy as np
import pytest
from scipy import stats

from amortes.bench.report.statistics import FLOOR, log_regret, mean_and_error, wilson, win_points


def test_regrets_are_floored_before_the_logarithm() -> None:
    found = log_regret(np.array([1.0, 0.01, 0.0, -1e-7, math.nan]))
    floor = math.log10(FLOOR)
    np.testing.assert_allclose(found, [0.0, -2.0, floor, floor, math.nan])


def test_mean_and_standard_error_agree_with_scipy() -> None:
    samples = np.random.default_rng(0).normal(size=(7, 4))
    mean, error, count = mean_and_error(samples)
    np.testing.assert_allclose(mean, samples.mean(0))
    np.testing.assert_allclose(error, stats.sem(samples))
    assert count.tolist() == [7] * 4


def test_gaps_are_left_out() -> None:
    samples = np.array([[1.0, 2.0, math.nan], [3.0, math.nan, math.nan]])
    mean, error, count = mean_and_error(samples)
    np.testing.assert_array_equal(mean, [2.0, 2.0, math.nan])
    np.testing.assert_array_equal(error, [1.0, math.nan, math.nan])
    assert count.tolist() == [2, 1, 0]


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (3, 10), (29, 30), (30, 30), (1, 1)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_agrees_with_scipy(wins: int, n: int, level: float) -> None:
    expected = stats.binomtest(wins, n).proportion_ci(level, method="wilson")
    np.testing.assert_allclose(wilson(wins, n, level), expected, atol=1e-12)


def test_ties_lie_between() -> None:
    below, tie, above = (wilson(points, 10) for points in (4.0, 4.5, 5.0))
    assert below < tie < above
    assert wilson(0, 0) == (0.0, 1.0)


def test_points() -> None:
    found = win_points(np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0]))
    assert found.tolist() == [1.0, 0.5, 0.0]
