import math

import pytest
import scipy.stats
import torch
from torch import Tensor

from amortes.oracles import marginal
from amortes.oracles.marginal import MarginalGP
from amortes.prior.gp import GPPrior, Kernel, Marginal
from amortes.prior.kernels import covariance
from amortes.prior.posterior import exact_posterior
from amortes.random import generator


def data(b: int = 2, n: int = 6, d: int = 2, p: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    rng = generator(0)
    X = torch.rand(b, n, d, generator=rng, dtype=torch.float64)
    y = torch.randn(b, n, generator=rng, dtype=torch.float64)
    return X, y, torch.randn(b, p, d + 3, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_likelihood_is_that_of_scipy(kernel: Kernel) -> None:
    prior = GPPrior(kernel=kernel, mean=Marginal.normal(0.3, 0.7))
    X, y, z = data()
    actual = MarginalGP(prior, X, y).log_likelihood(z)
    for i in range(2):
        for j in range(3):
            hyper = prior.hyperparameters(z[i, j], 2)
            K = covariance(kernel, hyper, X[i], X[i]) + 0.7**2
            K += hyper.noise_sd.square() * torch.eye(6)
            expected = scipy.stats.multivariate_normal.logpdf(y[i], [0.3] * 6, K)
            assert actual[i, j].item() == pytest.approx(expected, rel=1e-6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, z = data(b=3, p=5)
    gp = MarginalGP(GPPrior(), X, y)
    Xq = X[:, :4] * 0.9
    whole, moments = gp.log_likelihood(z), gp.moments(z, Xq)
    for chunk in (1, 100, 400):
        monkeypatch.setattr(marginal, "CHUNK", chunk)
        assert torch.allclose(gp.log_likelihood(z), whole, atol=1e-10)
        for part, expected in zip(gp.moments(z, Xq), moments, strict=True):
            assert torch.allclose(part, expected, atol=1e-10)


def test_posterior_is_exact_for_a_fixed_mean() -> None:
    prior = GPPrior(mean=Marginal.fixed(0.4))
    X, y, z = data()
    Xq = torch.rand(2, 5, 2, generator=generator(1), dtype=torch.float64)
    mean, variance = MarginalGP(prior, X, y).moments(z, Xq)
    hyper = prior.hyperparameters(z, 2)
    for j in range(3):
        expected = exact_posterior(prior.kernel, hyper[:, j], X, y, Xq)
        assert torch.allclose(mean[:, j], expected[0], atol=1e-8)
        assert torch.allclose(variance[:, j], expected[1], atol=1e-8)


def test_joint_contains_the_moments() -> None:
    X, y, z = data()
    gp = MarginalGP(GPPrior(), X, y)
    Xq = torch.rand(2, 5, 2, generator=generator(1), dtype=torch.float64)
    mean, variance = gp.moments(z, Xq)
    joint_mean, joint_covariance = gp.joint(1, z[1], Xq[1])
    assert torch.allclose(joint_mean, mean[1], atol=1e-10)
    assert torch.allclose(joint_covariance.diagonal(dim1=-2, dim2=-1), variance[1], atol=1e-10)
    assert torch.allclose(joint_covariance, joint_covariance.mT, atol=1e-10)
    # The first query again as an observation with tiny noise conditions the others alike.
    point = torch.cat([Xq[1, :1], Xq[1]])
    _, doubled = gp.joint(1, z[1], point)
    assert torch.allclose(doubled[:, 0, 1:], joint_covariance[:, 0], atol=1e-10)


def test_integrated_mean_is_the_average_over_drawn_means() -> None:
    """Law of total expectation and variance over draws of the mean."""
    prior = GPPrior(mean=Marginal.normal(0.3, 0.7))
    X, y, z = data(b=1, p=1)
    gp = MarginalGP(prior, X, y)
    Xq = torch.rand(1, 4, 2, generator=generator(1), dtype=torch.float64)
    mean, variance = gp.moments(z, Xq)
    draws = 20000
    many = gp.with_mean(z.expand(1, draws, -1), generator(2))
    assert torch.equal(many[..., :4], z.expand(1, draws, -1)[..., :4])
    hyper = prior.hyperparameters(many[0], 2)
    batch = (X.expand(draws, -1, -1), y.expand(draws, -1), Xq.expand(draws, -1, -1))
    means, variances = exact_posterior(prior.kernel, hyper, *batch)
    assert torch.allclose(means.mean(0), mean[0, 0], atol=4 * means.std().item() / math.sqrt(draws))
    assert torch.allclose(variances.mean(0) + means.var(0), variance[0, 0], rtol=0.05)
