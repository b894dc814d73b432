import json
from pathlib import Path

import pandas as pd
import pytest

from amortes.bench.problems import lcbench, synthetic
from amortes.bench.report.parts import records
from amortes.bench.report.published import load_published
from amortes.errors import FileError


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


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    curve = {"iter": [5, 10], "mean": [1.0, 2.0], "sem": [0.1, 0.2]}
    panels = {"Hartmann (4D), sigma_n=0.5": {"PFN-JES": curve}}
    path.write_text(json.dumps({"noise_ablation_hartmann_inference_regret_crc": panels}))
    assert at(load_published(path), "hartmann4-noise0.5", "paper:jes", 10) == (2.0, 0.2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "none of the figures"),
        ({"another": {}}, "none of the figures"),
        ({"lcbench_accuracy_v1_appendix": {"Some title": {}}}, "unknown title"),
        ({"lcbench_accuracy_v1_appendix": {"Car (2D)": {"SVM-EI": {"mean": [1]}}}}, "SVM-EI"),
        (
            {"lcbench_accuracy_v1_appendix": {"Car (2D)": {"GP-EI": {"sem": [1]}}}},
            r"GP-EI in panel 'Car \(2D",
        ),
        ({"lcbench_accuracy_v1_appendix": {"Car (2D)": {"GP-EI": [1]}}}, "no `mean`"),
    ],
)
def test_files_of_something_else(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "curves.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match=message):
        load_published(path)
