import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from amortes.prior.gp import PRIORS
from amortes.prior.posterior import exact_posterior
from amortes.random import derive_seeds, generator


def test_posterior_agrees_with_scikit_learn() -> None:
    hyper = PRIORS["paper"].sample(derive_seeds(3, count=4), 2)
    rng = generator(4)
    X = torch.rand(4, 9, 2, generator=rng, dtype=torch.float64)
    y = torch.randn(4, 9, generator=rng, dtype=torch.float64)
    Xq = torch.rand(4, 6, 2, generator=rng, dtype=torch.float64)
    mean, variance = exact_posterior("se", hyper, X, y, Xq)
    for i in range(4):
        kernel = ConstantKernel(1.0, "fixed") * RBF(hyper.lengthscale[i].numpy(), "fixed")
        oracle = GaussianProcessRegressor(kernel, alpha=float(hyper.noise_sd[i]) ** 2)
        oracle.fit(X[i].numpy(), (y[i] - hyper.mean[i]).numpy())
        m, s = oracle.predict(Xq[i].numpy(), return_std=True)
        assert np.allclose(mean[i], m + float(hyper.mean[i]), atol=1e-6)
        assert np.allclose(variance[i].sqrt(), s, atol=1e-4)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_duplicates_without_noise_are_survived(kernel: str) -> None:
    hyper = PRIORS["paper"].sample(derive_seeds(5, count=1), 1)
    hyper.noise_sd.zero_()
    X = torch.full((1, 4, 1), 0.5, dtype=torch.float64)
    y = torch.full((1, 4), 0.3, dtype=torch.float64)
    mean, variance = exact_posterior(kernel, hyper, X, y, X[:, :1])  # type: ignore[arg-type]
    assert float(mean) == pytest.approx(0.3, abs=1e-4)
    assert 0 < float(variance) < 1e-4
