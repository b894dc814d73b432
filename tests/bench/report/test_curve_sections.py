import pandas as pd
import pytest

from amortes.bench.report.curve_sections import (
    checkpoint_table,
    noise_section,
    regret_section,
    traces_section,
    weights_section,
)
from amortes.bench.report.names import panel_label
from amortes.bench.report.parts import Study
from amortes.bench.report.published import load_published
from amortes.bench.report.write import SECTIONS
from tests.bench.report.fake import curve, results, run


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
    for drawing in (d for n in ("accuracy", "real", "hpob") for d in SECTIONS[n](study).drawings):
        axes = [ax for ax in drawing.figure.axes if ax.get_visible()]
        assert all(ax.lines for ax in axes), drawing.name
        shown[drawing.name] = [ax.get_title().partition(": ")[0] for ax in axes]
    assert shown == {name: list(map(panel_label, found)) for name, found in panels.items()}


def test_the_data_of_a_figure_have_the_published_curves(study: Study) -> None:
    grid = regret_section(study).drawings[1]
    assert grid.name == "regret-gp"
    assert "branin,paper:fb-jes,100," in grid.csv()
    assert "uniform" not in grid.csv()


def test_checkpoints_mark_the_best() -> None:
    curves = [
        curve(panel, method, 0.0, end)
        for panel in ("branin", "lcbench-car")
        for method, end in (("jes", -1.5), ("mes", 0.0))
    ]
    table = checkpoint_table("noise-table", pd.concat(curves))
    assert table.cells[["method", "n = 10"]].to_numpy().tolist() == [
        ["amortes MES", "0.00 ± 0.10"],
        ["amortes JES", "**-1.50 ± 0.10**"],
        ["amortes MES", "**0.00 ± 0.10**"],
        ["amortes JES", "-1.50 ± 0.10"],
    ]
    assert set(table.cells["n = 25"]) == {""}  # no curve goes that far


def test_noise_levels_are_below_each_other(study: Study) -> None:
    (drawing,) = noise_section(study).drawings
    titles = [ax.get_title() for ax in drawing.figure.axes]
    assert titles == ["Hartmann, 4-D, noise 0.316", "Hartmann, 4-D, noise 0.5"]
    assert list(dict.fromkeys(drawing.data["panel"])) == ["hartmann4", "hartmann4-noise0.5"]


def test_other_weights(study: Study) -> None:
    (drawing,) = weights_section(study).drawings
    titles = [ax.get_title() for ax in drawing.figure.axes]
    assert titles == ["Branin, 2-D: JES", "Hartmann, 4-D: JES"]


def test_traces() -> None:
    methods = ("jes", "jes@runs/uniform.safetensors")
    traces = results(*(run("branin", method, 0, [0.0], regret=0.9) for method in methods))
    section = traces_section(Study(traces, load_published(), traces=traces))
    assert set(section.tables[0].cells["method"]) == {
        "amortes JES",
        "amortes JES @uniform",
        "published α-PFN JES",
        "published α-PFN JES @uniform",
    }
    assert traces_section(Study(traces)).empty
