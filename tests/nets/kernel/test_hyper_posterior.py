import dataclasses

import numpy as np
import pytest
import torch
from scipy import stats

from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.prior.gp import PRIORS, GPPrior, Hyperparameters, Kernel, Marginal
from amortes.prior.kernels import covariance
from amortes.prior.tasks import TaskBatch

FREE = dataclasses.replace(
    PRIORS["robust"], name="free", output_variance=Marginal.lognormal(0.0, 0.5)
)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_density_gradient_and_fisher(task: TaskBatch, kernel: Kernel) -> None:
    prior = dataclasses.replace(FREE, kernel=kernel)
    posterior = HyperPosterior(prior, task.X, task.y)
    z = torch.tensor([[0.3, -0.5, 0.4, 0.8]], dtype=torch.float64).repeat(3, 1).requires_grad_()
    value, gradient, fisher = posterior.derivatives(z.detach())
    density = posterior.log_density(z[:, None])[:, 0]
    (expected,) = torch.autograd.grad(density.sum(), z)
    assert torch.allclose(gradient, expected, atol=1e-8)
    hyper = posterior.hyperparameters(z.detach())
    for i in range(3):
        K = stats.multivariate_normal(
            [0.0] * 7, _covariance(prior, posterior, hyper, i), allow_singular=True
        )
        oracle = K.logpdf(task.y[i].numpy()) - 0.5 * z[i].detach().square().sum()
        assert float(value[i]) == pytest.approx(float(oracle) + 3.5 * 1.8378770664, abs=1e-6)
    assert torch.allclose(value, density.detach(), atol=1e-9)
    # The Fisher matrix is the expected negative Hessian: average it over data from the model.
    L = torch.linalg.cholesky(torch.as_tensor(_covariance(prior, posterior, hyper, 0)))
    draws = L @ torch.randn(7, 4000, generator=torch.Generator().manual_seed(0), dtype=L.dtype)
    many = HyperPosterior(prior, task.X[:1].expand(4000, -1, -1), draws.T)
    scores = many.derivatives(z[:1].detach().expand(4000, -1))[1] + z[0].detach()
    assert torch.allclose(scores.T @ scores / 4000 + torch.eye(4), fisher[0], atol=0.25, rtol=0.15)


def _covariance(
    prior: GPPrior, posterior: HyperPosterior, hyper: Hyperparameters, i: int
) -> np.ndarray:
    X = posterior.X[i]
    K = covariance(prior.kernel, hyper[i], X, X) + prior.mean.scale**2
    noise = hyper.noise_sd[i] ** 2 * torch.eye(len(X), dtype=X.dtype)
    return np.asarray(K + noise)
