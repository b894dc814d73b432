import numpy as np

from amortes.bench.report.curve_figures import (
    LOWEST,
    MOST_BANDS,
    curve_table,
    draw_grid,
    draw_noise,
    draw_panels,
    draw_variants,
)
from amortes.bench.report.curves import Curve, Curves


def curve(start: float, end: float, n: int = 10) -> Curve:
    return Curve(
        iteration=np.arange(1, n + 1),
        mean=np.linspace(start, end, n),
        error=np.full(n, 0.1),
        count=np.full(n, 3.0),
    )


CURVES: Curves = {
    "branin": {"jes": curve(0, -2), "fb-jes": curve(0, -1), "random": curve(0, -0.5)},
    "hartmann4": {"mes": curve(0, -1)},
}
PUBLISHED: Curves = {"branin": {"paper:jes": curve(1, -1), "paper:jes@uniform": curve(1, 0)}}


def test_panels() -> None:
    figure = draw_panels(CURVES, ylabel="regret")
    visible = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in visible] == ["Branin, 2-D", "Hartmann, 4-D"]
    assert len(visible[0].lines) == 3
    np.testing.assert_array_equal(visible[0].lines[0].get_ydata(), CURVES["branin"]["jes"].mean)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "amortes MES",
        "amortes JES",
        "fully Bayesian GP JES",
        "random search",
    ]


def test_many_methods_are_drawn_without_bands() -> None:
    names = ["pes", "mes", "jes", "ei", "logei", "fb-jes", "map-jes", "random", "optuna-tpe"]
    for count, bands in ((MOST_BANDS, MOST_BANDS), (MOST_BANDS + 1, 0)):
        methods = {name: curve(0, 1) for name in names[:count]}
        (ax,) = draw_panels({"branin": methods}, ylabel="regret").axes
        assert (len(ax.lines), len(ax.collections)) == (count, bands)


def test_axes_of_accuracies_leave_out_the_start() -> None:
    curves = {"lcbench-car": {"jes": curve(0.0, 90.0), "mes": curve(45.0, 81.0)}}
    (ax,) = draw_panels(curves, ylabel="accuracy", zoom=True).axes
    low, high = ax.get_ylim()
    assert low == 10.0  # of the lower curve, a fifth of the way along
    assert high > 90.0


def test_logarithmic_axes_survive_zeros() -> None:
    (ax,) = draw_panels({"hpob-1": {"jes": curve(1.0, 0.0)}}, ylabel="share", log=True).axes
    assert ax.get_yscale() == "log"
    assert LOWEST <= ax.get_ylim()[0] < 0.12


def test_a_grid_has_a_column_per_acquisition() -> None:
    figure = draw_grid(CURVES, PUBLISHED, ylabel="regret")
    axes = np.array(figure.axes).reshape(2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["MES", "JES"]
    # No random search, no ablation.
    assert len(axes[0, 1].lines) == 3
    assert len(axes[0, 0].lines) == 0
    assert len(axes[1, 0].lines) == 1


def test_noise_levels_share_an_axis() -> None:
    curves = {"branin": CURVES["branin"], "branin-noise0.5": {"jes": curve(0, -1)}}
    figure = draw_noise(curves, PUBLISHED, {"branin": list(curves)})
    assert [ax.get_title() for ax in figure.axes] == [
        "Branin, 2-D, noise 0.316",
        "Branin, 2-D, noise 0.5",
    ]
    assert [len(ax.lines) for ax in figure.axes] == [2, 1]  # ours and published
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_a_column_without_measured_curves_is_left_out() -> None:
    published: Curves = {"branin": {"paper:pes": curve(0, 1), "paper:mes": curve(0, 1)}}
    figure = draw_grid({"branin": CURVES["branin"]}, published, ylabel="regret")
    assert [ax.get_title() for ax in figure.axes] == ["Branin, 2-D: JES"]
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["amortes JES", "fully Bayesian GP"]


def test_a_single_acquisition_has_its_problems_side_by_side() -> None:
    curves = {name: {"jes": curve(0, -1)} for name in ("branin", "hartmann4", "ackley5", "ackley8")}
    figure = draw_grid(curves, {}, ylabel="regret")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == [
        "Branin, 2-D: JES",
        "Hartmann, 4-D: JES",
        "Ackley, 5-D: JES",
        "Ackley, 8-D: JES",
    ]
    assert [bool(ax.get_ylabel()) for ax in shown] == [True, False, False, True]
    assert [bool(ax.get_xlabel()) for ax in shown] == [False, True, True, True]


def test_variants() -> None:
    curves = {"branin": {"jes": curve(0, -2), "jes@uniform": curve(0, -1)}}
    figure = draw_variants(curves, PUBLISHED, ylabel="regret", plain="traces")
    (ax,) = figure.axes
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "amortes, traces",
        "amortes, uniform",
        "published α-PFN, traces",
        "published α-PFN, uniform",
    ]
    assert len(ax.lines) == 4
    colours = [line.get_color() for line in ax.lines]
    assert len(set(colours)) == 2  # by weights, not by who trained them
    assert sum(line.is_dashed() for line in ax.lines) == 2


def test_the_numbers_of_a_figure() -> None:
    table = curve_table("name", "title", {"branin": {"jes": curve(0, 1, n=2)}})
    assert table.csv().splitlines() == [
        "panel,method,iteration,mean,standard_error,samples",
        "branin,jes,1,0,0.1,3",
        "branin,jes,2,1,0.1,3",
    ]
