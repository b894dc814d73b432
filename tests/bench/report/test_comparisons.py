import pandas as pd
import pytest

from amortes.bench.report.comparisons import (
    average_ranks,
    count_wins,
    field_of,
    gp_pairs,
    rank_curves,
    regret_curves,
)
from tests.bench.report.fake import results, run


def wins_of(*runs: pd.DataFrame) -> dict[tuple[str, str, str], tuple[float, int]]:
    found = count_wins(results(*runs)).itertuples(index=False)
    return {(a, b, problem): (points, n) for a, b, problem, points, n in found}


def test_a_win_a_tie_and_a_loss() -> None:
    found = wins_of(
        run("a", "jes", 0, [0.0, 3.0]),
        run("a", "fb-jes", 0, [9.0, 2.0]),
        run("a", "jes", 1, [2.0]),
        run("a", "fb-jes", 1, [2.0]),
        run("b", "jes", 0, [1.0]),
        run("b", "fb-jes", 0, [2.0]),
        run("b", "jes", 7, [9.0]),  # nobody to be compared with
    )
    assert found == {
        ("jes", "fb-jes", "a"): (1.5, 2),
        ("jes", "fb-jes", "b"): (0.0, 1),
        ("fb-jes", "jes", "a"): (0.5, 2),
        ("fb-jes", "jes", "b"): (1.0, 1),
    }


def test_the_shorter_run_decides_when() -> None:
    long, short = run("a", "jes", 0, [1.0, 2.0, 9.0]), run("a", "mes", 0, [0.0, 3.0])
    assert wins_of(long, short)["jes", "mes", "a"] == (0.0, 1)
    assert wins_of(run("a", "jes", 0, [1.0], first=7), short) == {}
    by_regret = run("a", "jes", 0, [float("nan")] * 2, regret=[3.0, 1.0])
    assert wins_of(by_regret, run("a", "mes", 0, [0.0, -2.0]))["jes", "mes", "a"] == (1.0, 1)


def test_pairs_share_their_acquisition() -> None:
    names = [
        "mes",
        "logei",
        "auto",
        "jes@x",
        "fb-ei",
        "fb-mes",
        "map-logei",
        "map-gibbon",
        "random",
    ]
    assert gp_pairs(names) == [
        ("mes", "fb-mes"),
        ("logei", "fb-ei"),
        ("mes", "map-gibbon"),
        ("logei", "map-logei"),
    ]


def test_ranks_are_averaged_over_seeds_then_over_tasks() -> None:
    sweep = results(
        # Task a: seed 0 ranks jes 1, mes 2, random 3; seed 1 has a tie of the first two.
        *(run("a", m, 0, [v]) for m, v in (("jes", 3), ("mes", 2), ("random", 1))),
        *(run("a", m, 1, [v]) for m, v in (("jes", 3), ("mes", 3), ("random", 1))),
        # Task b has one seed and counts as much as a.
        *(run("b", m, 0, [v]) for m, v in (("jes", 1), ("mes", 3), ("random", 2))),
    )
    ranks = average_ranks(sweep, field_of(sweep, ["a", "b"]))
    assert ranks["rank"].to_dict() == {
        "mes": pytest.approx((1.75 + 1) / 2),
        "jes": pytest.approx((1.25 + 3) / 2),
        "random": pytest.approx((3 + 2) / 2),
    }
    assert list(ranks.index) == ["mes", "jes", "random"]
    assert ranks["standard_error"]["jes"] == pytest.approx(abs(1.25 - 3) / 2)


def test_errors_on_one_task_are_over_seeds() -> None:
    values = {("jes", 0): 1.0, ("mes", 0): 2.0, ("jes", 1): 4.0, ("mes", 1): 3.0}
    sweep = results(*(run("a", method, seed, [v]) for (method, seed), v in values.items()))
    ranks = average_ranks(sweep, field_of(sweep, ["a"]))
    assert ranks["rank"].tolist() == [1.5, 1.5]
    assert ranks["standard_error"].tolist() == [0.5, 0.5]


def test_a_method_with_few_runs_is_left_out() -> None:
    runs = [run(p, m, 0, [1.0]) for p in "abc" for m in ("jes", "mes")]
    sweep = results(*runs, run("a", "fb-jes", 0, [1.0]), run("d", "jes", 0, [1.0]))
    field = field_of(sweep, list("abcd"))
    assert field.methods == ["mes", "jes"]
    assert list(field.cells) == [("a", 0), ("b", 0), ("c", 0)]
    assert (field.left_out, field.tasks) == (["fb-jes"], 3)


def test_methods_without_a_common_cell() -> None:
    runs = [run("a", "jes", seed, [1.0]) for seed in (0, 1)] + [run("a", "mes", 2, [1.0])]
    assert field_of(results(*runs), ["a"]).methods == ["jes"]
    nothing = field_of(results(*runs), ["b"])
    assert nothing.methods == []
    assert average_ranks(results(*runs), nothing).empty


def test_ranks_over_iterations_sum_to_a_constant() -> None:
    methods = ("pes", "mes", "jes", "random")
    sweep = results(
        *(
            run(p, m, seed, [(3 * i * seed + n * i) % 4 for n in range(6)], first=first)
            for p, first in (("a", 2), ("b", 4))
            for i, m in enumerate(methods)
            for seed in range(3)
        )
    )
    curves = rank_curves(sweep, field_of(sweep, ["a", "b"]), "space")
    total = curves.groupby("iteration")["mean"].sum()
    assert total.index.tolist() == [4, 5, 6, 7]  # that both tasks have
    assert total.tolist() == pytest.approx([10.0] * 4)


def test_regret_in_units_of_the_initial_one() -> None:
    sweep = results(
        run("a", "jes", 0, [0, 0, 0], regret=[4.0, 2.0, 0.0]),
        run("a", "mes", 0, [0, 0, 0], regret=[4.0, 4.0, 1.0]),
        run("b", "jes", 0, [0, 0, 0], regret=[0.1, 0.1, 0.1]),
        run("b", "mes", 0, [0, 0, 0], regret=[0.1, 0.0, 0.0]),
        *(run("c", m, 0, [0, 0, 0], regret=0.0) for m in ("jes", "mes")),
        *(run("d", m, 0, [0, 0, 0]) for m in ("jes", "mes")),
        run("a", "mes", 2, [0, 0, 0], regret=8.0),  # a seed of one method
    )
    curves, left_out = regret_curves(sweep, field_of(sweep, sweep.problems), "space")
    assert left_out == ["c"]
    mean = curves.set_index("method")["mean"]
    assert mean["jes"].tolist() == pytest.approx([1.0, 0.75, 0.5])
    assert mean["mes"].tolist() == pytest.approx([1.0, 0.5, 0.125])
