import json
from pathlib import Path

import pytest

from amortes.bench.report.names import HPOB, LCBENCH, SYNTHETIC
from amortes.bench.report.published import load_published
from amortes.errors import FileError


def test_the_shipped_curves() -> None:
    published = load_published()
    functions = SYNTHETIC.keys() - {"ackley5", "ackley8"}
    assert {*functions, *LCBENCH, "hartmann4-noise0.5", "hartmann6-noise0.5"} == set(
        published.curves
    )
    assert set(HPOB) == set(published.ranks)
    assert {*functions, *LCBENCH, *HPOB} == set(published.wins)
    # From the tables that came with the numbers.
    assert published.curves["branin"]["paper:pes"].at(100) == pytest.approx((-2.040, 0.122))
    assert published.curves["ackley8-near"]["paper:fb-ei"].at(50) == pytest.approx((0.686, 0.019))
    uniform = published.curves["hartmann6"]["paper:mes@uniform"].at(25)
    assert uniform == pytest.approx((0.346, 0.031), abs=1.1e-3)
    assert published.curves["lcbench-car"]["paper:jes"].at(10) == pytest.approx((71.60, 1.05))
    assert published.ranks["hpob-5527"]["paper:mes"].at(50) == pytest.approx((6.15, 0.13), abs=6e-3)
    win = published.wins["branin"]["pes"].at(10)
    assert win is not None
    assert win[0] == pytest.approx(0.8)
    seeds = {n for found in published.curves.values() for c in found.values() for n in c.count}
    assert seeds == {30.0}


def test_published_ranks_add_up() -> None:
    for methods in load_published().ranks.values():
        assert len(methods) == 8
        total = sum(curve.mean for curve in methods.values())
        assert total == pytest.approx(36.0, abs=0.01)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    curve = {"iter": [5, 10], "mean": [1.0, 2.0], "sem": [0.1, 0.2]}
    panels = {"Hartmann (4D), sigma_n=0.5": {"PFN-JES": curve}}
    path.write_text(json.dumps({"noise_ablation_hartmann_inference_regret_crc": panels}))
    published = load_published(path)
    assert published.curves["hartmann4-noise0.5"]["paper:jes"].at(10) == (2.0, 0.2)
    assert published.ranks == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no names of figures"),
        ({"another": {}}, "none of the figures"),
        ({"hpob_win_rate": {"Some title": {}}}, "unknown title"),
        ({"hpob_win_rate": {"ID=1 (2D)": {"SVM-EI": {"mean": [1]}}}}, "SVM-EI"),
        ({"hpob_win_rate": {"ID=1 (2D)": {"GP-EI": {"sem": [1]}}}}, r"GP-EI in panel 'ID=1 \(2D"),
        ({"hpob_win_rate": {"ID=1 (2D)": {"GP-EI": [1]}}}, "no `mean`"),
    ],
)
def test_files_of_something_else(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "curves.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match=message):
        load_published(path)
