import pytest

from amortes.bench.report.hpob import hpob, rank_curves, regret_curves
from amortes.bench.report.parts import Study
from amortes.bench.report.results import common_rows
from tests.bench.report.fake import make, results, run

REGRETS = {"hpob-5527-31": [0.0, 0.0], "hpob-5527-9914": [0.2, 0.1]}
RUNS = [
    run(problem, method, 0, [1.0, end], regret=regret)
    for problem, regret in REGRETS.items()
    for method, end in (("jes", 1.5), ("random", 1.0))
]


def test_tasks_without_regret_are_named() -> None:
    (note,) = make(hpob, Study(results(*RUNS))).notes
    assert note.startswith("HPO-B 5527, 8-D: without regret")
    assert note.endswith(" contain the best one: hpob-5527-31.")
    assert make(hpob, Study(results(*RUNS[2:]))).notes == []


def test_ranks_at_the_end() -> None:
    (table,) = make(hpob, Study(results(*RUNS))).tables
    assert table.cells.to_numpy().tolist() == [
        *(["amortes JES", "**1.00 ± 0.00**"], ["random search", "2.00 ± 0.00"])
    ]
    assert table.cells.columns[1] == "HPO-B 5527, 8-D (2 tasks)"


def test_all_spaces_together(study: Study) -> None:
    panels = ["hpob-5527", "hpob-5971", "all spaces"]
    shown = [[*drawing.data["panel"].unique()] for drawing in make(hpob, study).drawings]
    assert shown == [panels, panels]  # ranks, regret


def test_ranks_over_iterations_sum_to_a_constant() -> None:
    sweep = results(
        *(
            run(p, m, seed, [(3 * i * seed + n * i) % 4 for n in range(6)], first=first)
            for p, first in (("a", 2), ("b", 4))
            for i, m in enumerate(("pes", "mes", "jes", "random"))
            for seed in range(3)
        )
    )
    curves = rank_curves(common_rows(sweep, ["a", "b"])[0], "space")
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
    curves, left_out = regret_curves(common_rows(sweep, sweep.problems)[0], "space")
    assert left_out == ["c"]
    mean = curves.set_index("method")["mean"]
    assert mean["jes"].tolist() == pytest.approx([1.0, 0.75, 0.5])
    assert mean["mes"].tolist() == pytest.approx([1.0, 0.5, 0.125])
