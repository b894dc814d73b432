import numpy as np
import pandas as pd
import pytest

from amortes.bench.report.curves import average, joined, problem_curves, task_curves
from tests.bench.report.fake import results, run


def test_the_mean_is_taken_after_the_logarithm() -> None:
    runs = [run("branin", "jes", seed, [0.0], regret=r) for seed, r in enumerate((1.0, 0.01))]
    curve = problem_curves(results(*runs).rows)
    assert curve[["mean", "standard_error", "samples"]].to_numpy().tolist() == [[-1.0, 1.0, 2.0]]


def test_a_curve_ends_where_fewer_than_half_of_the_seeds_go_on() -> None:
    runs = [run("sklearn-a", "jes", seed, [n] * n) for seed, n in enumerate((4, 2, 2))]
    assert problem_curves(results(*runs).rows)["iteration"].tolist() == [1, 2]
    curve = problem_curves(results(*runs[:2]).rows)
    assert curve["iteration"].tolist() == [1, 2, 3, 4]
    assert curve["mean"].tolist() == [3.0, 3.0, 4.0, 4.0]
    assert curve["standard_error"].isna().tolist() == [False, False, True, True]


def test_unknown_regret_has_no_curve() -> None:
    sweep = results(
        run("branin", "jes", 0, [1.0]),
        run("branin", "mes", 0, [1.0], regret=0.1),
        run("sklearn-a", "jes", 0, [0.7]),
    )
    curves = problem_curves(sweep.rows)
    assert curves[["panel", "method"]].to_numpy().tolist() == [
        ["branin", "mes"],
        ["sklearn-a", "jes"],
    ]


def test_tasks_count_the_same_for_the_iterations_that_all_have() -> None:
    rows = pd.concat(
        [
            run("a", "jes", 0, [1.0, 1.0, 1.0]),
            run("a", "jes", 1, [3.0, 3.0, 3.0]),
            run("b", "jes", 0, [6.0, 8.0], first=2),
        ]
    )
    both = task_curves(rows, "value", "space")
    assert both["iteration"].tolist() == [2, 3]
    assert both["mean"].tolist() == pytest.approx([4.0, 5.0])
    assert both["standard_error"].tolist() == pytest.approx([2.0, 3.0])
    alone = task_curves(rows[rows["problem"] == "a"], "value", "space")
    assert alone["mean"].tolist() == [2.0] * 3  # over seeds
    np.testing.assert_allclose(alone["standard_error"], 1.0)


def test_published_curves_stand_with_their_panel() -> None:
    rows = pd.concat([run(p, "jes", 0, [1.0]) for p in ("b", "a")])
    curves = average(rows, ["problem", "method"], "value").rename(columns={"problem": "panel"})
    both = joined(curves, curves.assign(method="paper:jes").replace({"panel": {"a": "c"}}))
    assert both[["panel", "method"]].to_numpy().tolist() == [
        ["b", "jes"],
        ["b", "paper:jes"],
        ["a", "jes"],
    ]
