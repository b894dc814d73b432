import pandas as pd
import pytest

from amortes.bench.problems import lcbench, synthetic
from amortes.bench.report.parts import records
from amortes.bench.report.published import load_published


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
