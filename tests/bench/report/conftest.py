from pathlib import Path

import pytest

from amortes.bench.report.curves import load_published
from amortes.bench.report.load import load_results
from amortes.bench.report.parts import Study
from tests.bench.report.fake import write_sweep

PROBLEMS = (
    "branin",
    "hartmann4",
    "hartmann4-noise0.5",
    "lcbench-fashion-mnist",
    "hpob-5527-31",
    "hpob-5971-10093",
    "sklearn-svm-digits",
)
METHODS = ("mes", "jes", "logei", "jes@kernel-paper", "fb-jes", "map-logei", "optuna-tpe", "random")


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sweep in which the fully Bayesian GP was run on Branin only."""
    folder = write_sweep(
        tmp_path_factory.mktemp("sweep"),
        problems=PROBLEMS,
        methods=METHODS,
        seeds=2,
        iterations=20,
        skip=[(problem, "fb-jes") for problem in PROBLEMS[1:]],
    )
    (folder / "failures").mkdir()
    text = "branin, fb-mes, seed 0\n\nTraceback ...\nValueError: of some kind\n"
    (folder / "failures" / "branin__fb-mes__0.txt").write_text(text)
    return folder


@pytest.fixture(scope="session")
def study(sweep: Path) -> Study:
    return Study(load_results(sweep), load_published())
