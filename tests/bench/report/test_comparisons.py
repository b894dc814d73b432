import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from amortes.bench.report.comparisons import (
    average_ranks,
    common_rows,
    count_wins,
    draw_matrix,
    draw_ranks,
    draw_wins,
    over_gps,
    ranks,
    wins,
    with_rates,
)
from amortes.bench.report.parts import Study
from tests.bench.report.fake import make, results, run


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
    by_regret = run("a", "jes", 0, [math.nan] * 2, regret=[3.0, 1.0])
    assert wins_of(by_regret, run("a", "mes", 0, [0.0, -2.0]))["jes", "mes", "a"] == (1.0, 1)


def wilson(points: float, n: int) -> tuple[float, float]:
    (row,) = with_rates(pd.DataFrame({"points": [points], "pairs": n, "a": 0}), ["a"]).to_dict(
        "records"
    )
    assert row["rate"] == points / n
    return row["low"], row["high"]


@pytest.mark.parametrize(("points", "n"), [(0, 5), (3, 10), (29, 30), (30, 30), (1, 1)])
def test_wilson_agrees_with_scipy(points: int, n: int) -> None:
    expected = stats.binomtest(points, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(points, n), expected, atol=1e-12)
    assert wilson(4.0, 10) < wilson(4.5, 10) < wilson(5.0, 10)


def test_gps_with_the_same_acquisition() -> None:
    names = ["mes", "logei", "auto", "jes@x", "fb-ei", "fb-mes", "map-logei", "map-gibbon"]
    every = count_wins(results(*(run("a", name, 0, [0.0]) for name in names)))
    found = over_gps(every, names)[["model", "ours", "theirs"]]
    assert found.to_numpy().tolist() == [
        *(["fb", "mes", "fb-mes"], ["fb", "logei", "fb-ei"]),
        *(["map", "mes", "map-gibbon"], ["map", "logei", "map-logei"]),
    ]


def test_ranks_are_averaged_over_seeds_then_over_tasks() -> None:
    sweep = results(
        # Task a: seed 0 ranks jes 1, mes 2, random 3; seed 1 has a tie of the first two.
        *(run("a", m, 0, [v]) for m, v in (("jes", 3), ("mes", 2), ("random", 1))),
        *(run("a", m, 1, [v]) for m, v in (("jes", 3), ("mes", 3), ("random", 1))),
        # Task b has one seed and counts as much as a.
        *(run("b", m, 0, [v]) for m, v in (("jes", 1), ("mes", 3), ("random", 2))),
    )
    found = average_ranks(common_rows(sweep, ["a", "b"])[0])
    assert found["method"].tolist() == ["mes", "jes", "random"]
    assert found["mean"].tolist() == pytest.approx([(1.75 + 1) / 2, (1.25 + 3) / 2, (3 + 2) / 2])
    assert found["standard_error"][0] == pytest.approx(abs(1.75 - 1) / 2)
    alone = average_ranks(common_rows(sweep, ["a"])[0])  # errors are over seeds then
    assert alone["mean"].tolist() == [1.25, 1.75, 3.0]
    assert alone["standard_error"].tolist() == [0.25, 0.25, 0.0]


def test_a_method_with_few_runs_is_left_out() -> None:
    runs = [run(p, m, 0, [1.0]) for p in "abc" for m in ("jes", "mes")]
    sweep = results(*runs, run("a", "fb-jes", 0, [1.0]), run("d", "jes", 0, [1.0]))
    rows, left_out = common_rows(sweep, list("abcd"))
    assert set(zip(rows["problem"], rows["method"], strict=True)) == {
        (problem, method) for problem in "abc" for method in ("jes", "mes")
    }
    assert left_out == ["fb-jes"]


def test_methods_without_a_common_cell() -> None:
    runs = [run("a", "jes", seed, [1.0]) for seed in (0, 1)] + [run("a", "mes", 2, [1.0])]
    rows, left_out = common_rows(results(*runs), ["a"])
    assert (set(rows["method"]), left_out) == ({"jes"}, ["mes"])
    nothing, _ = common_rows(results(*runs), ["b"])
    assert average_ranks(nothing).empty


def test_wins_against_gps_only_where_both_were_run(study: Study) -> None:
    (table,) = make(wins, study).tables
    against = set(zip(table.cells["problem"], table.cells["against"], strict=True))
    assert ("Branin, 2-D", "fully Bayesian GP JES") in against
    assert ("Hartmann, 4-D", "fully Bayesian GP JES") not in against
    assert ("Hartmann, 4-D", "MAP GP LogEI") in against


def test_win_rates_by_group_and_of_all_pairs() -> None:
    values = {"jes": (1.0, 2.0), "fb-jes": (0.0, 2.0)}
    runs = [run("branin", m, s, [v]) for m, vs in values.items() for s, v in enumerate(vs)]
    by_group, matrix = make(wins, Study(results(*runs))).drawings
    assert by_group.csv().splitlines()[1] == "synthetic,jes,fb-jes,0.7500,0.1979,0.9733,2"
    rates = [line.split(",")[:3] for line in matrix.csv().splitlines()[1:]]
    assert rates == [["jes", "fb-jes", "0.7500"], ["fb-jes", "jes", "0.2500"]]


def test_nothing_to_compare_is_said() -> None:
    lone = Study(results(run("branin", "jes", 0, [0.0])))
    assert "nothing to compare" in make(wins, lone).notes[0]
    assert make(ranks, lone).notes == ["No two methods share a run."]


def test_ranks_name_who_was_left_out(study: Study) -> None:
    made = make(ranks, study)
    assert made.tables[0].cells.columns[1] == "synthetic (8 methods)"
    assert "HPO-B (7 methods)" in made.tables[0].cells.columns
    assert "all problems: not ranked, for too few runs: fully Bayesian GP JES." in made.notes


def test_the_figure_of_wins() -> None:
    columns = ["group", "ours", "theirs", "rate", "low", "high"]
    rows = [["a", "jes", "fb-jes", 0.6, 0.31, 0.83], ["b", "logei", "fb-ei", 0.5, 0.1, 0.9]]
    figure = draw_wins(pd.DataFrame(rows, columns=columns), {("a", "jes"): 0.4, ("a", "ei"): 0.3})
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["JES against fully Bayesian GP", "LogEI against fully Bayesian GP EI"]
    points = [float(np.asarray(line.get_xdata())[0]) for line in figure.axes[0].lines]
    assert points == [0.5, 0.31, 0.6, 0.4, 0.3]  # even, interval, rate, two as published
    assert len(figure.axes[1].lines) == 1 + 2


def test_the_matrix_has_a_number_in_each_known_cell() -> None:
    rates = pd.DataFrame(
        [["jes", "mes", 0.75], ["mes", "jes", 0.25], ["mes", "random", 1.0]],
        columns=["ours", "theirs", "rate"],
    )
    (ax,) = draw_matrix(["jes", "mes", "random"], rates).axes
    numbers = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert numbers == {(0.5, 1.5): "75", (1.5, 0.5): "25", (1.5, 2.5): "100"}


def test_the_figure_of_ranks() -> None:
    columns = ["group", "method", "rank", "standard_error", "methods", "tasks"]
    rows = [["LCBench", "jes", 1.2, 0.1, 2, 2], ["LCBench", "random", 1.8, math.nan, 2, 2]]
    (ax,) = draw_ranks(pd.DataFrame(rows, columns=columns)).axes
    assert ax.get_title() == "LCBench\n2 methods, 2 tasks"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["amortes JES", "random search"]
