from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from amortes.bench.problems import surrogate
from amortes.bench.problems.surrogate import (
    NOISE_VARIANCE_PRIOR,
    OUTPUT_VARIANCE_PRIOR,
    cached_fit,
    fit,
)
from amortes.prior.gp import Hyperparameters
from amortes.prior.kernels import covariance


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

    monkeypatch.setattr(surrogate, "fit", counted)
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
