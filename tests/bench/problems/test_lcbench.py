from pathlib import Path

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from amortes.bench.problems.data import Source
from amortes.bench.problems.lcbench import (
    HIGH,
    LOW,
    TASKS,
    LCBench,
    TableSurrogate,
    published,
    read_table,
)
from amortes.files import read_json
from tests.bench.problems.conftest import RAW, VALIDATION

BOUNDS = torch.tensor([LOW, HIGH], dtype=torch.float64)


def cube(X: torch.Tensor) -> torch.Tensor:
    return (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])


def test_the_function_is_the_posterior_mean_of_the_table(folder: Path) -> None:
    X = torch.from_numpy(RAW).clone()
    X[:, [0, 2, 4]] = X[:, [0, 2, 4]].log10()
    known, _ = published("segment")
    mean, sd = VALIDATION.mean(), VALIDATION.std(ddof=1)
    oracle = GaussianProcessRegressor(
        ConstantKernel(float(known.output_variance)) * Matern(nu=2.5),
        alpha=float(known.noise_sd) ** 2,
        optimizer=None,
    )
    lengthscale, constant = known.lengthscale, float(known.mean)
    oracle.fit((X / lengthscale).numpy(), (VALIDATION - mean) / sd - constant)
    U = torch.rand(9, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    points = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U
    expected = mean + sd * (constant + oracle.predict((points / lengthscale).numpy()))
    problem = LCBench("lcbench-segment")
    torch.testing.assert_close(problem.value(U), torch.from_numpy(expected), atol=1e-9, rtol=0)
    assert (problem.d, problem.noise_sd) == (7, 0.0)


def test_the_package_has_the_same_table(folder: Path, package: Path) -> None:
    X, y = read_table(Source(folder=folder, is_package=False), "segment")
    source = Source(folder=package / "opt_problems" / "hpo" / "data", is_package=True)
    for task in ("segment", "Fashion-MNIST"):
        X32, y32 = read_table(source, task)
        torch.testing.assert_close(X32, X, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(y32, y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["lcbench-car", "lcbench-fashion-mnist", "lcbench-higgs"])
def test_values_of_ax(real_data: Source, name: str) -> None:
    path = real_data.folder / "lcbench" / "gp_test_vectors.json"
    if not path.exists():
        pytest.skip("needs the test vectors of the data folder")
    vectors = read_json(path)[TASKS[name]]
    X = torch.tensor(vectors["X_log10space"], dtype=torch.float64)
    expected = torch.tensor(vectors["f"], dtype=torch.float64)
    torch.testing.assert_close(LCBench(name).value(cube(X)), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_highest_value_is_almost_reached_and_not_exceeded(real_data: Source, name: str) -> None:
    problem = LCBench(name)
    surrogate = problem._surrogate
    assert isinstance(surrogate, TableSurrogate)
    X = cube(surrogate.X).clamp(0, 1)  # the table itself has points near the best
    x = X[problem.value(X).topk(16).indices].clone().requires_grad_(True)
    optimiser = torch.optim.Adam([x], lr=0.02)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, total_iters=80)
    for _ in range(80):
        optimiser.zero_grad()
        (-problem.value(x).sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            x.clamp_(0, 1)
    found = float(problem.value(x.detach()).max())
    assert problem.best - 0.3 < found < problem.best + 1e-6
