import numpy as np
import pandas as pd
import pytest

from amortes.bench.report.curve_sections import (
    checkpoint_table,
    draw_grid,
    hpob,
    noise,
    rank_curves,
    regret,
    regret_curves,
    traces,
    weights,
)
from amortes.bench.report.curves import load_published
from amortes.bench.report.load import common_rows
from amortes.bench.report.names import panel_label
from amortes.bench.report.parts import Study
from amortes.bench.report.write import SECTIONS
from tests.bench.report.fake import curve, make, results, run
from tests.bench.report.test_curves import legend_of


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
        ({"lcbench-car": "jes@x"}, {}),
        (
            {"sklearn-svm-digits": "fb-jes", "sklearn-mlp-wine": "auto"},
            {"real": ["sklearn-mlp-wine"], "real-gp": ["sklearn-svm-digits"]},
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
    runs = (run(p, m, s, [1.0, 2.0], regret=[1.0, 0.5]) for p, m in covered.items() for s in (0, 1))
    study = Study(results(*runs))
    shown = {}
    for drawing in (
        d for n in ("accuracy", "real", "hpob") for d in make(SECTIONS[n], study).drawings
    ):
        axes = [ax for ax in drawing.figure.axes if ax.get_visible()]
        assert all(ax.lines for ax in axes), drawing.name
        shown[drawing.name] = [ax.get_title().partition("\n")[0] for ax in axes]
    assert shown == {name: list(map(panel_label, found)) for name, found in panels.items()}


def test_the_data_of_a_figure_have_the_published_curves(study: Study) -> None:
    grid = make(regret, study).drawings[1]
    assert grid.name == "regret-gp"
    assert "branin,paper:fb-jes,100," in grid.csv()
    assert "uniform" not in grid.csv()


def test_a_grid_has_a_column_per_acquisition_that_was_run() -> None:
    names = ("jes", "fb-jes", "random", "paper:jes", "paper:jes@uniform", "paper:pes")
    curves = [curve("branin", name, 0, -2) for name in names] + [curve("hartmann4", "mes", 0, -1)]
    figure = draw_grid(pd.concat(curves))
    axes = np.array(figure.axes).reshape(2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["Branin, 2-D\nMES", "Branin, 2-D\nJES"]
    # No random search, no ablation.
    assert [[len(ax.lines) for ax in row] for row in axes] == [[0, 3], [1, 0]]
    assert legend_of(figure) == [
        *("amortes MES", "amortes JES", "fully Bayesian GP", "published α-PFN JES")
    ]


def test_a_single_acquisition_has_its_problems_side_by_side() -> None:
    names = ("branin", "hartmann4", "ackley5", "ackley8")
    figure = draw_grid(pd.concat(curve(name, "jes", 0, -1) for name in names))
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == [f"{panel_label(name)}\nJES" for name in names]
    assert [bool(ax.get_ylabel()) for ax in shown] == [True, False, False, True]
    assert [bool(ax.get_xlabel()) for ax in shown] == [False, True, True, True]


def test_checkpoints_mark_the_best() -> None:
    for panel, cells in {
        "branin": ["0.00 ± 0.10", "**-1.50 ± 0.10**"],
        "lcbench-car": ["**0.00 ± 0.10**", "-1.50 ± 0.10"],
    }.items():
        curves = [curve(panel, method, 0.0, end) for method, end in (("jes", -1.5), ("mes", 0.0))]
        table = checkpoint_table("noise", "Noise", pd.concat(curves))
        assert table.cells["method"].tolist() == ["amortes MES", "amortes JES"]
        assert table.cells["n = 10"].tolist() == cells
        assert set(table.cells["n = 25"]) == {""}  # no curve goes that far


def test_more_noise_stands_beside_what_was_published(study: Study) -> None:
    plain, grid = make(noise, study).drawings
    assert [ax.get_title() for ax in plain.figure.axes] == ["Hartmann, 4-D, noise 0.5"]
    assert (plain.name, grid.name) == ("noise", "noise-gp")
    assert "hartmann4-noise0.5,paper:jes,100," in grid.csv()


def test_other_weights(study: Study) -> None:
    (drawing,) = make(weights, study).drawings
    titles = [ax.get_title() for ax in drawing.figure.axes]
    assert titles == ["Branin, 2-D\nJES", "Hartmann, 4-D\nJES"]
    assert legend_of(drawing.figure) == ["amortes, default weights", "amortes, kernel-paper"]


def test_traces() -> None:
    methods = ("jes", "jes@runs/uniform.safetensors")
    sweep = results(*(run("branin", method, 0, [0.0], regret=0.9) for method in methods))
    made = make(traces, Study(sweep, load_published(), traces=sweep))
    ours, published = ["amortes JES", "amortes JES @uniform"], "published α-PFN JES"
    assert made.tables[0].cells["method"].tolist() == [*ours, published, f"{published} @uniform"]
    (ax,) = made.drawings[0].figure.axes
    assert len({line.get_color() for line in ax.lines}) == 2  # by weights, not by who trained them
    assert sum(line.is_dashed() for line in ax.lines) == 2
    assert make(traces, Study(sweep)).notes == ["Not given."]
    other = results(*(run("branin", m, 0, [0.0], regret=0.9) for m in (*methods, "random")))
    (drawing,) = make(traces, Study(sweep, traces=other)).drawings
    assert legend_of(drawing.figure) == ["amortes, optimisation traces", "amortes, uniform"]


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
