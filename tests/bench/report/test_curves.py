import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from amortes.bench.problems import lcbench, synthetic
from amortes.bench.report.curves import (
    LOWEST,
    MOST_BANDS,
    draw_panels,
    joined,
    load_published,
    overview,
    problem_curves,
    task_curves,
)
from amortes.bench.report.parts import records
from tests.bench.report.fake import curve, results, run


def legend_of(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_the_mean_is_taken_after_the_logarithm() -> None:
    runs = [run("branin", "jes", seed, [0.0], regret=r) for seed, r in enumerate((1.0, 0.01))]
    found = problem_curves(results(*runs).rows)
    assert found[["mean", "standard_error", "samples"]].to_numpy().tolist() == [[-1.0, 1.0, 2.0]]


def test_a_curve_ends_where_fewer_than_half_of_the_seeds_go_on() -> None:
    runs = [run("sklearn-a", "jes", seed, [n] * n) for seed, n in enumerate((4, 2, 2))]
    assert problem_curves(results(*runs).rows)["iteration"].tolist() == [1, 2]
    found = problem_curves(results(*runs[:2]).rows)
    assert found["mean"].tolist() == [3.0, 3.0, 4.0, 4.0]
    assert found["standard_error"].isna().tolist() == [False, False, True, True]


def test_unknown_regret_has_no_curve() -> None:
    runs = [run("branin", "jes", 0, [1.0]), run("sklearn-a", "jes", 0, [0.7])]
    found = problem_curves(results(*runs, run("branin", "mes", 0, [1.0], regret=0.1)).rows)
    assert found[["panel", "method"]].to_numpy().tolist() == [
        *(["branin", "mes"], ["sklearn-a", "jes"])
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
    here = pd.concat([curve(panel, "jes", 0, 1, n=1) for panel in "ba"])
    there = pd.concat([curve(panel, "paper:jes", 0, 1, n=1) for panel in "cb"])
    assert joined(here, there)[["panel", "method"]].to_numpy().tolist() == [
        *(["b", "jes"], ["b", "paper:jes"], ["a", "jes"])
    ]


def test_the_overview_has_ours_and_what_people_use() -> None:
    names = ("jes", "jes@x", "fb-jes", "map-logei", "random")
    curves = pd.concat([curve("branin", name, 0, 1, n=1) for name in names])
    assert overview(curves)["method"].tolist() == ["jes", "map-logei", "random"]
    assert "fb-jes" in set(overview(curves, "fb")["method"])


def test_panels() -> None:
    methods = {"jes": -2, "fb-jes": -1, "random": -0.5}
    curves = pd.concat([curve("branin", name, 0, end) for name, end in methods.items()])
    figure = draw_panels(pd.concat([curves, curve("hartmann4", "mes", 0, -1)]))
    first, second = figure.axes
    assert [ax.get_title() for ax in figure.axes] == ["Branin, 2-D", "Hartmann, 4-D"]
    assert (first.get_ylabel(), second.get_ylabel()) == ("log10 inference regret", "")
    assert (len(first.lines), len(second.lines)) == (3, 1)
    np.testing.assert_array_equal(first.lines[0].get_ydata(), np.linspace(0, -2, 10))
    assert legend_of(figure) == [
        *("amortes MES", "amortes JES", "fully Bayesian GP JES", "random search")
    ]


def test_many_methods_are_drawn_without_bands() -> None:
    names = ["pes", "mes", "jes", "ei", "logei", "fb-jes", "map-jes", "random", "optuna-tpe"]
    for count, bands in ((MOST_BANDS, MOST_BANDS), (MOST_BANDS + 1, 0)):
        curves = pd.concat(curve("branin", name, 0, 1) for name in [*names[:count], "paper:jes"])
        (ax,) = draw_panels(curves).axes
        assert (len(ax.lines), len(ax.collections)) == (count + 1, bands)


def test_axes_of_accuracies_leave_out_the_start() -> None:
    curves = pd.concat([curve("lcbench-car", "jes", 0, 90), curve("lcbench-car", "mes", 45, 81)])
    (ax,) = draw_panels(curves).axes
    low, high = ax.get_ylim()
    assert low == 10.0  # of the lower curve, a fifth of the way along
    assert high > 90.0


def test_logarithmic_axes_survive_zeros() -> None:
    (ax,) = draw_panels((curve("hpob-1", "jes", 1.0, 0.0)), "share", log=True).axes
    assert ax.get_yscale() == "log"
    assert LOWEST <= ax.get_ylim()[0] < 0.12


def at(curves: pd.DataFrame, panel: str, method: str, n: int) -> tuple[float, float]:
    chosen = (curves["panel"] == panel) & (curves["method"] == method) & (curves["iteration"] == n)
    (row,) = records(curves[chosen])
    return row.mean, row.standard_error


def test_the_shipped_curves() -> None:
    curves = load_published()
    functions = synthetic.FUNCTIONS.keys() - {"ackley5", "ackley8"}
    noisy = {"hartmann4-noise0.5", "hartmann6-noise0.5"}
    assert set(curves["panel"]) == {*functions, *lcbench.TASKS, *noisy}
    # From the tables that came with the numbers.
    assert at(curves, "branin", "paper:pes", 100) == pytest.approx((-2.040, 0.122))
    assert at(curves, "ackley8-near", "paper:fb-ei", 50) == pytest.approx((0.686, 0.019))
    uniform = at(curves, "hartmann6", "paper:mes@uniform", 25)
    assert uniform == pytest.approx((0.346, 0.031), abs=1.1e-3)
    assert at(curves, "lcbench-car", "paper:jes", 10) == pytest.approx((71.60, 1.05))
    assert set(curves["samples"]) == {30.0}
