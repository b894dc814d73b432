import math

import numpy as np
import pytest
from scipy import stats

from amortes.bench.report.statistics import (
    FLOOR,
    bootstrap,
    log_regret,
    mean_and_error,
    student,
    welch,
    wilson,
    win_points,
)


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
def test_wilson_agrees_with_scipy(wins: int, n: int) -> None:
    expected = stats.binomtest(wins, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(wins, n), expected, atol=1e-12)


def test_ties_lie_between() -> None:
    below, tie, above = (wilson(points, 10) for points in (4.0, 4.5, 5.0))
    assert below < tie < above
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_bootstrap_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(5, 40, size=12).astype(np.float64)
    points = np.round(n * rng.random(12))

    def rate(points: np.ndarray, n: np.ndarray, axis: int) -> np.ndarray:
        found: np.ndarray = points.sum(axis) / n.sum(axis)
        return found

    expected = stats.bootstrap(
        (points, n), rate, paired=True, method="percentile", vectorized=True, rng=2
    ).confidence_interval
    np.testing.assert_allclose(bootstrap(points, n), expected, atol=0.01)
    assert bootstrap(points, n) == bootstrap(points, n)


def test_the_bootstrap_is_wider_than_for_independent_pairs() -> None:
    """Half of the problems are always won, the others never: 400 pairs are but 10."""
    points, n = np.array([40.0, 0.0] * 5), np.full(10, 40.0)
    low, high = bootstrap(points, n)
    assert low < wilson(200, 400)[0] - 0.1
    assert high > wilson(200, 400)[1] + 0.1


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


def test_points() -> None:
    found = win_points(np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0]))
    assert found.tolist() == [1.0, 0.5, 0.0]
