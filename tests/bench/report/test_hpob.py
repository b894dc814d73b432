from amortes.bench.report.hpob import hpob_section
from amortes.bench.report.parts import Study
from tests.bench.report.fake import results, run

REGRETS = {"hpob-5527-31": [0.0, 0.0], "hpob-5527-9914": [0.2, 0.1]}
RUNS = [
    run(problem, method, 0, [1.0, end], regret=regret)
    for problem, regret in REGRETS.items()
    for method, end in (("jes", 1.5), ("random", 1.0))
]


def test_tasks_without_regret_are_named() -> None:
    (note,) = hpob_section(Study(results(*RUNS))).notes
    assert note.startswith("HPO-B 5527, 8-D: without regret")
    assert note.endswith(" contain the best one: hpob-5527-31.")
    assert hpob_section(Study(results(*RUNS[2:]))).notes == []


def test_ranks_at_the_end() -> None:
    (table,) = hpob_section(Study(results(*RUNS))).tables
    assert table.cells.to_numpy().tolist() == [
        ["amortes JES", "**1.00 ± 0.00**"],
        ["random search", "2.00 ± 0.00"],
    ]
    assert table.cells.columns[1] == "HPO-B 5527, 8-D (2 tasks)"


def test_all_spaces_together(study: Study) -> None:
    ranks, regret, published = hpob_section(study).drawings
    panels = ["hpob-5527", "hpob-5971", "all spaces"]
    assert list(dict.fromkeys(ranks.data["panel"])) == panels
    assert list(dict.fromkeys(regret.data["panel"])) == panels
    assert list(dict.fromkeys(published.data["panel"])) == panels[:2]
