from dataclasses import replace

import pytest

from amortes.bench.report.ablation_sections import traces_section, variants_section
from amortes.bench.report.comparison_sections import groups, standings_section, wins_section
from amortes.bench.report.curve_sections import checkpoint_table, regret_section
from amortes.bench.report.curves import Curves
from amortes.bench.report.names import panel_label
from amortes.bench.report.published import load_published, read_curve
from amortes.bench.report.results import Results
from amortes.bench.report.sections import FIGURES, SECTIONS, TABLES
from amortes.bench.report.study import Study
from tests.bench.report.fake import results, run

CURVE = {"mean": [0.0] * 9 + [-1.5], "sem": [0.1] * 10}
LONE = Study(results(run("branin", "jes", 0, [0.0, 0.1], regret=[1.0, 0.9])))


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_stands_one_method_on_one_problem(name: str) -> None:
    section = SECTIONS[name](LONE)
    assert section.name == name
    assert section.reading.count(". ") == 0  # one sentence says how to read it
    assert section.reading.endswith(".")
    assert not section.empty or section.notes  # that nothing is there is said


@pytest.mark.parametrize(
    ("covered", "panels"),
    [
        (
            {"lcbench-car": "fb-jes", "lcbench-higgs": "jes"},
            {"accuracy": ["lcbench-higgs"], "accuracy-gp": ["lcbench-car", "lcbench-higgs"]},
        ),
        (
            {"lcbench-car": "random", "lcbench-higgs": "jes"},
            {"accuracy": ["lcbench-car", "lcbench-higgs"], "accuracy-gp": ["lcbench-higgs"]},
        ),
        ({"lcbench-car": "fb-jes"}, {"accuracy-gp": ["lcbench-car"]}),
        ({"lcbench-car": "random"}, {"accuracy": ["lcbench-car"]}),
        ({"lcbench-car": "jes@x"}, {}),
        (
            {"sklearn-svm-digits": "fb-jes", "sklearn-mlp-wine": "jes"},
            {"real": ["sklearn-mlp-wine"], "real-gp": ["sklearn-svm-digits", "sklearn-mlp-wine"]},
        ),
        (
            {"hpob-5527-31": "map-jes", "hpob-5971-10093": "jes"},
            # Over all spaces the two share no run: one is left out, the other ranked but not drawn.
            {"hpob-ranks": ["hpob-5971"], "hpob-regret": ["hpob-5971"]},
        ),
        ({"hpob-5527-31": "map-jes"}, {}),
    ],
)
def test_figures_have_the_problems_they_can_show(
    covered: dict[str, str], panels: dict[str, list[str]]
) -> None:
    study = Study(
        results(
            *(run(p, m, seed, [1.0, 2.0], regret=[1.0, 0.5]) for p, m in covered.items()
              for seed in range(2))
        )
    )  # fmt: skip
    sections = [SECTIONS[name](study) for name in ("accuracy", "real", "hpob")]
    drawings = {d.name: d for section in sections for d in section.drawings}
    shown = {}
    for name, drawing in drawings.items():
        axes = [ax for ax in drawing.figure.axes if ax.get_visible()]
        assert all(ax.lines for ax in axes), name
        shown[name] = [ax.get_title().partition(": ")[0] for ax in axes]
    assert shown == {name: list(map(panel_label, found)) for name, found in panels.items()}


def test_names_of_figures_and_tables_are_unique(study: Study) -> None:
    sections = [build(replace(study, traces=study.results)) for build in SECTIONS.values()]
    drawings = [drawing.name for section in sections for drawing in section.drawings]
    tables = [table.name for section in sections for table in section.tables]
    assert len(set(drawings)) == len(drawings)
    assert len(set(tables)) == len(tables)
    assert set(tables) == set(TABLES)
    wanted = (
        "regret regret-gp accuracy hpob-ranks hpob-regret hpob-ranks-published real wins "
        "win-matrix ranks runtime noise weights traces"
    )
    assert set(wanted.split()) <= set(drawings)
    assert {name: FIGURES[name] for name in drawings} == {
        drawing.name: section.name for section in sections for drawing in section.drawings
    }
    assert all(drawing.data.name == drawing.name for s in sections for drawing in s.drawings)


def test_the_data_of_a_figure_have_the_published_curves(study: Study) -> None:
    grid = regret_section(study).drawings[1]
    assert grid.name == "regret-gp"
    assert "branin,paper:fb-jes,100," in grid.data.csv()
    assert "uniform" not in grid.data.csv()


def test_checkpoints_mark_the_best() -> None:
    curves: Curves = {
        "branin": {"jes": read_curve(CURVE), "mes": read_curve({"mean": [0.0] * 10})},
        "lcbench-car": {"jes": read_curve(CURVE), "mes": read_curve({"mean": [0.0] * 10})},
    }
    table = checkpoint_table("name", "title", curves)
    assert [(row[1], row[2]) for row in table.rows] == [
        ("amortes MES", "0.00"),
        ("amortes JES", "**-1.50 ± 0.10**"),
        ("amortes MES", "**0.00**"),
        ("amortes JES", "-1.50 ± 0.10"),
    ]
    assert all(row[3] == "" for row in table.rows)  # no curve goes that far


def test_groups_and_all_together(study: Study) -> None:
    found = groups(study)
    assert list(found) == [
        "synthetic",
        "synthetic, other noise",
        "LCBench",
        "HPO-B",
        "other",
        "all problems",
    ]
    assert found["all problems"] == study.results.problems
    assert list(groups(LONE)) == ["synthetic"]


def test_wins_against_gps_only_where_both_were_run(study: Study) -> None:
    (table,) = wins_section(study).tables
    against = {(row[0], row[2]) for row in table.rows}
    assert ("Branin, 2-D", "fully Bayesian GP JES") in against
    assert ("Hartmann, 4-D", "fully Bayesian GP JES") not in against
    assert ("Hartmann, 4-D", "MAP GP LogEI") in against


def test_standings_reach_the_paper(study: Study) -> None:
    counts, here, published = standings_section(study).tables
    names = [counts.name, here.name, published.name]
    assert names == ["standings-counts", "common-seeds", "standings"]
    assert {row[2] for row in here.rows} == {"fully Bayesian GP", "MAP GP"}
    assert {row[2] for row in published.rows} == {"published α-PFN", "published fully Bayesian GP"}
    assert counts.columns[-1] == "MAP GP LogEI run here"
    assert {(row[0], row[1]): bool(row[-1]) for row in counts.rows if row[0] != "MAP GP"} == {
        ("fully Bayesian GP", "synthetic"): False,
        ("published α-PFN", "synthetic"): True,
        ("published α-PFN", "synthetic, other noise"): False,
        ("published α-PFN", "LCBench"): True,
        ("published fully Bayesian GP", "synthetic"): True,
        ("published fully Bayesian GP", "synthetic, other noise"): False,
        ("published fully Bayesian GP", "LCBench"): True,
    }


def test_common_seeds_have_paired_gains() -> None:
    ends = {"logei": (-1.0, -2.0, -6.0), "fb-ei": (-0.5, -1.3)}
    runs = [
        run("branin", method, seed, [0.0], regret=[10**end])
        for method, found in ends.items()
        for seed, end in enumerate(found)
    ]
    _, table = standings_section(Study(Results(runs))).tables
    cells = "Branin, 2-D|LogEI|fully Bayesian GP|1|2|-1.50 ± 0.50|-0.90 ± 0.40|+0.60 ± 0.10|level"
    assert [*table.rows] == [cells.split("|")]


def test_other_weights(study: Study) -> None:
    section = variants_section(study)
    (drawing,) = section.drawings
    titles = [ax.get_title() for ax in drawing.figure.axes]
    assert titles == ["Branin, 2-D: JES", "Hartmann, 4-D: JES"]


def test_traces() -> None:
    methods = ("jes", "jes@runs/uniform.safetensors")
    traces = results(*(run("branin", method, 0, [0.0], regret=[0.9]) for method in methods))
    section = traces_section(Study(LONE.results, load_published(), traces=traces))
    labels = {row[1] for row in section.tables[0].rows}
    assert labels == {
        "amortes JES",
        "amortes JES @uniform",
        "published α-PFN JES",
        "published α-PFN JES @uniform",
    }
    assert traces_section(LONE).empty


def test_times_may_come_from_a_sweep_of_their_own() -> None:
    fast = results(run("branin", "jes", 0, [0.0], seconds=[(0.5, 0.5, 0.5)]))
    slow = results(run("branin", "jes", 0, [0.0], seconds=[(7.0, 0.5, 0.5)]))
    for study in (Study(slow, timed=fast), Study(fast)):
        (drawing,) = SECTIONS["runtime"](study).drawings
        (row,) = drawing.data.rows
        assert dict(zip(drawing.data.columns, row, strict=True))["total"] == "1"


def test_speed_ups_are_a_table_of_problems_and_acquisitions() -> None:
    seconds = {"jes": 1.0, "mes": 2.0, "fb-jes": 30.0, "map-logei": 4.0}
    runs = [run("branin", m, 0, [0.0], seconds=[(s, 0, 0)]) for m, s in seconds.items()]
    runs += [run("ackley5", m, 0, [0.0], seconds=[(1, 1, 1)]) for m in ("mes", "map-logei")]
    table = SECTIONS["runtime"](Study(Results(runs))).tables[0]
    assert [*table.columns] == [
        "problem",
        "MES against MAP GP LogEI",
        "JES against fully Bayesian GP",
        "JES against MAP GP LogEI",
    ]
    assert [*table.rows] == [
        ["Branin, 2-D", "2.0×", "30×", "4.0×"],
        ["Ackley, 5-D", "1.0×", "", ""],
    ]


def test_tasks_without_regret_are_named() -> None:
    regrets = {"hpob-5527-31": [0.0, 0.0], "hpob-5527-9914": [0.2, 0.1]}
    runs = [
        run(problem, method, 0, [1.0, 1.0], regret=regret)
        for problem, regret in regrets.items()
        for method in ("jes", "random")
    ]
    (note,) = SECTIONS["hpob"](Study(Results(runs))).notes
    assert note.startswith("HPO-B 5527, 8-D: without regret")
    assert note.endswith(" contain the best one: hpob-5527-31.")
    assert SECTIONS["hpob"](Study(Results(runs[2:]))).notes == []


def test_threads_that_differ_are_pointed_out() -> None:
    runs = [run("branin", m, 0, [0.0], seconds=[(1, 1, 1)]) for m in ("jes", "mes")]
    object.__setattr__(runs[1], "threads", "4")
    (note,) = SECTIONS["runtime"](Study(Results(runs))).notes
    assert "not comparable" in note
