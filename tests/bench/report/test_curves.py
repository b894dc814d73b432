import math

import numpy as np

from amortes.bench.report.curves import all_curves, average, higher_is_better, method_curve, metric
from tests.bench.report.fake import results, run


def test_the_mean_is_taken_after_the_logarithm() -> None:
    runs = [run("branin", "jes", seed, [0.0], regret=[r]) for seed, r in enumerate((1.0, 0.01))]
    curve = method_curve(runs, "regret")
    assert curve.mean.tolist() == [-1.0]
    assert curve.error.tolist() == [1.0]
    assert curve.count.tolist() == [2.0]


def test_a_curve_ends_where_fewer_than_half_of_the_seeds_go_on() -> None:
    lengths = (4, 2, 2)
    curve = average(
        (np.arange(1, n + 1), np.full(n, float(seed))) for seed, n in enumerate(lengths)
    )
    assert curve.iteration.tolist() == [1, 2]
    curve = average((np.arange(1, n + 1), np.full(n, float(n))) for n in (4, 2))
    assert curve.iteration.tolist() == [1, 2, 3, 4]
    assert curve.mean.tolist() == [3.0, 3.0, 4.0, 4.0]
    assert np.isnan(curve.error[2:]).all()


def test_a_point_of_a_curve() -> None:
    curve = average([(np.array([2, 3]), np.array([1.0, 5.0]))])
    assert curve.at(3) is not None
    point = curve.at(2)
    assert point is not None
    assert point[0] == 1.0
    assert math.isnan(point[1])
    assert curve.at(4) is None


def test_metrics() -> None:
    assert metric("hartmann6-noise0.5") == "regret"
    assert metric("lcbench-car") == "accuracy"
    assert metric("sklearn-svm-digits") == "value"
    assert higher_is_better("accuracy")
    assert not higher_is_better("regret")


def test_unknown_regret_has_no_curve() -> None:
    sweep = results(
        run("branin", "jes", 0, [1.0]),
        run("branin", "mes", 0, [1.0], regret=[0.1]),
        run("sklearn-a", "jes", 0, [0.7]),
    )
    curves = all_curves(sweep, sweep.problems)
    assert list(curves["branin"]) == ["mes"]
    assert curves["sklearn-a"]["jes"].mean.tolist() == [0.7]
