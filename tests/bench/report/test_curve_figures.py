import numpy as np
import pandas as pd

from amortes.bench.report.curve_figures import (
    LOWEST,
    MOST_BANDS,
    draw_grid,
    draw_noise,
    draw_panels,
    draw_variants,
)
from tests.bench.report.fake import curve

BRANIN = [
    curve("branin", "jes", 0, -2),
    curve("branin", "fb-jes", 0, -1),
    curve("branin", "random", 0, -0.5),
]
PUBLISHED = [curve("branin", "paper:jes", 1, -1), curve("branin", "paper:jes@uniform", 1, 0)]
CURVES = pd.concat([*BRANIN, curve("hartmann4", "mes", 0, -1)])


def legend_of(figure) -> list[str]:  # type: ignore[no-untyped-def]
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_panels() -> None:
    figure = draw_panels(CURVES, ylabel="regret")
    visible = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in visible] == ["Branin, 2-D", "Hartmann, 4-D"]
    assert len(visible[0].lines) == 3
    np.testing.assert_array_equal(visible[0].lines[0].get_ydata(), np.linspace(0, -2, 10))
    assert legend_of(figure) == [
        *("amortes MES", "amortes JES", "fully Bayesian GP JES", "random search")
    ]


def test_many_methods_are_drawn_without_bands() -> None:
    names = ["pes", "mes", "jes", "ei", "logei", "fb-jes", "map-jes", "random", "optuna-tpe"]
    for count, bands in ((MOST_BANDS, MOST_BANDS), (MOST_BANDS + 1, 0)):
        curves = pd.concat(curve("branin", name, 0, 1) for name in names[:count])
        (ax,) = draw_panels(curves, ylabel="regret").axes
        assert (len(ax.lines), len(ax.collections)) == (count, bands)


def test_axes_of_accuracies_leave_out_the_start() -> None:
    curves = pd.concat([curve("lcbench-car", "jes", 0, 90), curve("lcbench-car", "mes", 45, 81)])
    (ax,) = draw_panels(curves, ylabel="accuracy", zoom=True).axes
    low, high = ax.get_ylim()
    assert low == 10.0  # of the lower curve, a fifth of the way along
    assert high > 90.0


def test_logarithmic_axes_survive_zeros() -> None:
    (ax,) = draw_panels(curve("hpob-1", "jes", 1.0, 0.0), ylabel="share", log=True).axes
    assert ax.get_yscale() == "log"
    assert LOWEST <= ax.get_ylim()[0] < 0.12


def test_a_grid_has_a_column_per_acquisition_that_was_run() -> None:
    other = curve("branin", "paper:pes", 0, 1)
    figure = draw_grid(pd.concat([CURVES, *PUBLISHED, other]), ylabel="regret")
    axes = np.array(figure.axes).reshape(2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["MES", "JES"]
    # No random search, no ablation.
    assert [[len(ax.lines) for ax in row] for row in axes] == [[0, 3], [1, 0]]
    assert legend_of(figure) == [
        *("amortes MES", "amortes JES", "fully Bayesian GP", "published α-PFN JES")
    ]


def test_a_single_acquisition_has_its_problems_side_by_side() -> None:
    names = ("branin", "hartmann4", "ackley5", "ackley8")
    figure = draw_grid(pd.concat(curve(name, "jes", 0, -1) for name in names), ylabel="regret")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == [
        *("Branin, 2-D: JES", "Hartmann, 4-D: JES", "Ackley, 5-D: JES", "Ackley, 8-D: JES")
    ]
    assert [bool(ax.get_ylabel()) for ax in shown] == [True, False, False, True]
    assert [bool(ax.get_xlabel()) for ax in shown] == [False, True, True, True]


def test_noise_levels_share_an_axis() -> None:
    noisy = curve("branin-noise0.5", "jes", 0, -1)
    figure = draw_noise(
        pd.concat([*BRANIN, *PUBLISHED, noisy]), {"branin": ["branin", "branin-noise0.5"]}
    )
    assert [ax.get_title() for ax in figure.axes] == [
        *("Branin, 2-D, noise 0.316", "Branin, 2-D, noise 0.5")
    ]
    assert [len(ax.lines) for ax in figure.axes] == [2, 1]  # ours and published
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_variants() -> None:
    ours = [curve("branin", "jes", 0, -2), curve("branin", "jes@a/uniform.safetensors", 0, -1)]
    figure = draw_variants(pd.concat([*ours, *PUBLISHED]), ylabel="regret", plain="traces")
    (ax,) = figure.axes
    assert legend_of(figure) == [
        *("amortes, traces", "amortes, uniform", "published α-PFN, traces"),
        "published α-PFN, uniform",
    ]
    assert len({line.get_color() for line in ax.lines}) == 2  # by weights, not by who trained them
    assert sum(line.is_dashed() for line in ax.lines) == 2
