import math

import numpy as np
import pytest

from amortes.bench.report.ranks import average_ranks, field_of, normalised_regret, rank_curves
from tests.bench.report.fake import results, run


def test_ranks_are_averaged_over_seeds_then_over_tasks() -> None:
    sweep = results(
        # Task a: seed 0 ranks jes 1, mes 2, random 3; seed 1 has a tie of the first two.
        run("a", "jes", 0, [3.0]),
        run("a", "mes", 0, [2.0]),
        run("a", "random", 0, [1.0]),
        run("a", "jes", 1, [3.0]),
        run("a", "mes", 1, [3.0]),
        run("a", "random", 1, [1.0]),
        # Task b has one seed and counts as much as a.
        run("b", "jes", 0, [1.0]),
        run("b", "mes", 0, [3.0]),
        run("b", "random", 0, [2.0]),
    )
    ranks = average_ranks(sweep, ["a", "b"])
    assert ranks.mean == {
        "mes": pytest.approx((1.75 + 1) / 2),
        "jes": pytest.approx((1.25 + 3) / 2),
        "random": pytest.approx((3 + 2) / 2),
    }
    assert list(ranks.mean) == ["mes", "jes", "random"]
    assert ranks.error["jes"] == pytest.approx(abs(1.25 - 3) / 2)


def test_errors_on_one_task_are_over_seeds() -> None:
    values = {("jes", 0): 1.0, ("mes", 0): 2.0, ("jes", 1): 4.0, ("mes", 1): 3.0}
    sweep = results(*(run("a", method, seed, [v]) for (method, seed), v in values.items()))
    ranks = average_ranks(sweep, ["a"])
    assert ranks.mean == {"mes": 1.5, "jes": 1.5}
    assert ranks.error == {"mes": 0.5, "jes": 0.5}


def test_a_method_with_few_runs_is_left_out() -> None:
    runs = [run(p, m, 0, [1.0]) for p in "abc" for m in ("jes", "mes")]
    runs += [run("a", "fb-jes", 0, [1.0]), run("d", "jes", 0, [1.0])]
    field = field_of(results(*runs), list("abcd"))
    assert field.methods == ["mes", "jes"]
    assert field.cells == [("a", 0), ("b", 0), ("c", 0)]
    assert field.left_out == ["fb-jes"]


def test_methods_without_a_common_cell() -> None:
    runs = [run("a", "jes", seed, [1.0]) for seed in (0, 1)] + [run("a", "mes", 2, [1.0])]
    field = field_of(results(*runs), ["a"])
    assert field.methods == ["jes"]
    assert field_of(results(*runs), ["b"]).methods == []
    assert average_ranks(results(*runs), ["b"]).mean == {}


def test_ranks_over_iterations_sum_to_a_constant() -> None:
    rng = np.random.default_rng(0)
    methods = ("pes", "mes", "jes", "random")
    sweep = results(
        *(
            run(p, m, seed, rng.integers(0, 3, 6).astype(float).tolist(), first=first)
            for p, first in (("hpob-1-a", 2), ("hpob-1-b", 4))
            for m in methods
            for seed in range(3)
        )
    )
    curves, field = rank_curves(sweep, sweep.problems)
    assert set(curves) == set(methods)
    assert len(field.cells) == 6
    for curve in curves.values():
        assert curve.iteration.tolist() == [4, 5, 6, 7]  # that both tasks have
    assert sum(curve.mean for curve in curves.values()) == pytest.approx(10.0)


def test_regret_in_units_of_the_initial_one() -> None:
    sweep = results(
        run("hpob-1-a", "jes", 0, [0, 0, 0], regret=[4.0, 2.0, 0.0]),
        run("hpob-1-a", "mes", 0, [0, 0, 0], regret=[4.0, 4.0, 1.0]),
        run("hpob-1-b", "jes", 0, [0, 0, 0], regret=[0.1, 0.1, 0.1]),
        run("hpob-1-b", "mes", 0, [0, 0, 0], regret=[0.1, 0.0, 0.0]),
        run("hpob-1-c", "jes", 0, [0, 0, 0], regret=[0.0, 0.0, 0.0]),
        run("hpob-1-c", "mes", 0, [0, 0, 0], regret=[0.0, 0.0, 0.0]),
        run("hpob-1-d", "jes", 0, [0, 0, 0]),
        run("hpob-1-d", "mes", 0, [0, 0, 0]),
    )
    curves, left_out = normalised_regret(sweep, sweep.problems)
    assert left_out == ["hpob-1-c"]
    assert curves["jes"].mean == pytest.approx([1.0, 0.75, 0.5])
    assert curves["mes"].mean == pytest.approx([1.0, 0.5, 0.125])
    assert curves["jes"].error == pytest.approx([0.0, 0.25, 0.5])
    assert not math.isnan(curves["mes"].mean[0])


def test_regret_is_compared_on_the_same_cells() -> None:
    cells = [("hpob-1-a", 0), ("hpob-1-a", 1), ("hpob-1-b", 0)]
    both = [run(p, m, s, [0, 0], regret=[2.0, 1.0]) for p, s in cells for m in ("jes", "mes")]
    sweep = results(
        *both,
        run("hpob-1-a", "mes", 2, [0, 0], regret=[8.0, 8.0]),  # a seed of one method
        run("hpob-1-c", "mes", 0, [0, 0], regret=[2.0, 2.0]),  # a task of one method
        run("hpob-1-a", "random", 0, [0, 0], regret=[2.0, 2.0]),  # too few to take part
    )
    curves, left_out = normalised_regret(sweep, sweep.problems)
    assert left_out == []
    assert list(curves) == ["mes", "jes"]
    for curve in curves.values():
        assert curve.mean == pytest.approx([1.0, 0.5])
