from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from amortes.bench.problems import lcbench
from amortes.bench.problems.data import Source
from amortes.bench.problems.lcbench import (
    HIGH,
    LOW,
    NOISE_VARIANCE_PRIOR,
    OUTPUT_VARIANCE_PRIOR,
    TASKS,
    LCBench,
    TableSurrogate,
    cached_fit,
    fit,
    read_table,
)
from amortes.files import read_json
from amortes.prior.gp import Hyperparameters
from amortes.prior.kernels import covariance
from tests.bench.problems.conftest import HYPERPARAMETERS, RAW, VALIDATION


@pytest.fixture(scope="module")
def table() -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    X = torch.rand(60, 2, dtype=torch.float64, generator=g)
    noise = 0.2 * torch.randn(60, dtype=torch.float64, generator=g)
    return X, 70 + 4 * ((5 * X[:, 0]).sin() + noise)


def log_posterior(hyper: Hyperparameters, X: torch.Tensor, y: torch.Tensor) -> float:
    """SciPy's densities of the standardised y and of the two variances."""
    standard = ((y - y.mean()) / y.std()).numpy()
    K = covariance("matern52", hyper, X, X).numpy()
    noise_variance = float(hyper.noise_sd) ** 2
    K = K + noise_variance * np.eye(len(X))
    mean = np.full(len(X), float(hyper.mean))
    value = scipy.stats.multivariate_normal(mean, K).logpdf(standard)
    for variance, (loc, scale) in (
        (float(hyper.output_variance), OUTPUT_VARIANCE_PRIOR),
        (noise_variance, NOISE_VARIANCE_PRIOR),
    ):
        value += scipy.stats.lognorm(s=scale, scale=np.exp(loc)).logpdf(variance)
    return float(value)


def test_the_fit_is_a_maximum_of_the_posterior(table: tuple[torch.Tensor, torch.Tensor]) -> None:
    X, y = table
    hyper = fit(X, y)
    best = log_posterior(hyper, X, y)
    for field, steps in (
        ("lengthscale", (torch.tensor([1.1, 1.0]), torch.tensor([0.9, 1.0]))),
        ("output_variance", (torch.tensor(1.001), torch.tensor(0.999))),
        ("noise_sd", (torch.tensor(1.05), torch.tensor(0.95))),
        ("mean", (torch.tensor(1.2), torch.tensor(0.8))),
    ):
        for step in steps:
            moved = Hyperparameters(**{**vars(hyper), field: getattr(hyper, field) * step})
            assert log_posterior(moved, X, y) < best
    # The second coordinate does not matter, and the fit says so.
    assert hyper.lengthscale[1] > 5 * hyper.lengthscale[0]


def test_a_fit_is_remembered(
    table: tuple[torch.Tensor, torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMORTES_CACHE", str(tmp_path))
    X, y = table
    calls = []

    def counted(X: torch.Tensor, y: torch.Tensor) -> Hyperparameters:
        calls.append(1)
        return Hyperparameters(X[0], y[0], y[1], y[2])

    monkeypatch.setattr(lcbench, "fit", counted)
    first, second = cached_fit(X, y), cached_fit(X, y)
    assert len(calls) == 1
    assert first.tensors().keys() == second.tensors().keys()
    for name, tensor in first.tensors().items():
        assert torch.equal(tensor, second.tensors()[name])
    [file] = tmp_path.iterdir()
    file.write_text("[]")
    cached_fit(X, y)
    cached_fit(X, y + 1)
    assert len(calls) == 3


BOUNDS = torch.tensor([LOW, HIGH], dtype=torch.float64)


def cube(X: torch.Tensor) -> torch.Tensor:
    return (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])


def test_the_function_is_the_posterior_mean_of_the_table(folder: Path) -> None:
    X = torch.from_numpy(RAW).clone()
    X[:, [0, 2, 4]] = X[:, [0, 2, 4]].log10()
    lengthscale = torch.tensor(HYPERPARAMETERS["lengthscale"], dtype=torch.float64)
    mean, sd = VALIDATION.mean(), VALIDATION.std(ddof=1)
    kernel = ConstantKernel(HYPERPARAMETERS["outputscale"]) * Matern(nu=2.5)
    oracle = GaussianProcessRegressor(
        kernel, alpha=HYPERPARAMETERS["noise_variance"], optimizer=None
    )
    constant = HYPERPARAMETERS["mean_constant"]
    oracle.fit((X / lengthscale).numpy(), (VALIDATION - mean) / sd - constant)
    U = torch.rand(9, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    points = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U
    expected = mean + sd * (constant + oracle.predict((points / lengthscale).numpy()))
    problem = LCBench("lcbench-segment")
    torch.testing.assert_close(problem.value(U), torch.from_numpy(expected), atol=1e-9, rtol=0)
    assert (problem.d, problem.noise_sd) == (7, 0.0)


def test_the_package_has_the_same_table_and_no_known_optimum(
    folder: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = read_table(Source(folder=folder, is_package=False), "segment")
    source = Source(folder=package / "opt_problems" / "hpo" / "data", is_package=True)
    for task in ("segment", "Fashion-MNIST"):
        X32, y32 = read_table(source, task)
        torch.testing.assert_close(X32, X, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(y32, y, rtol=1e-6, atol=1e-6)
    fitted = LCBench("lcbench-segment")
    assert fitted.best is None
    # The learning rate decides: a small one is bad whatever else.
    bad, good = (torch.full((1, 7), 0.5, dtype=torch.float64) for _ in range(2))
    bad[0, 4], good[0, 4] = 0.05, 0.95
    assert float(fitted.value(good)) > float(fitted.value(bad)) + 5.0


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
    if problem.best is None:
        pytest.skip("needs the hyperparameters of the data folder")
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
