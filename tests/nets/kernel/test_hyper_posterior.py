import dataclasses

import numpy as np
import pytest
import torch
from scipy import stats

from amortes.nets.kernel import hyper_posterior
from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.prior.gp import PRIORS, GPPrior, Hyperparameters, Marginal
from amortes.prior.kernels import covariance
from amortes.prior.tasks import TaskBatch

FREE = dataclasses.replace(
    PRIORS["robust"], name="free", output_variance=Marginal.lognormal(0.0, 0.5)
)


CASES = {
    "se": FREE,
    "matern52": dataclasses.replace(FREE, kernel="matern52"),
    "mixed": PRIORS["real"].models[0][1],
    "warped se": dataclasses.replace(
        FREE, warp_shape=Marginal.normal(0.0, 0.35), warp_shift=Marginal.normal(0.1, 0.8)
    ),
    "warped and mixed": PRIORS["real"].models[1][1],
    "one warp": dataclasses.replace(FREE, warp_shift=Marginal.normal(0.1, 0.8)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("many", [0, 64])
def test_density_gradient_and_information(
    monkeypatch: pytest.MonkeyPatch, task: TaskBatch, case: str, many: int
) -> None:
    monkeypatch.setattr(hyper_posterior, "MANY", many)
    prior = CASES[case]
    posterior = HyperPosterior(prior, task.X, task.y)
    p = posterior.p
    assert p == 4 + (4 if prior.warped else 0) + (1 if prior.kernel == "mixed" else 0)
    row = torch.tensor([[0.3, -0.5, 0.4, 0.8, 0.6, -0.3, -0.7, 0.5, 0.2]], dtype=torch.float64)
    if not prior.warped:
        row[:, 4:5] = row[:, 8:]
    z = row[:, :p].repeat(3, 1).requires_grad_()
    value, gradient, _ = posterior.derivatives(z.detach())
    density = posterior.log_density(z[:, None])[:, 0]
    (expected,) = torch.autograd.grad(density.sum(), z)
    assert torch.allclose(gradient, expected, atol=1e-8)
    hyper = posterior.hyperparameters(z.detach())
    for i in range(3):
        K = stats.multivariate_normal(
            [0.0] * 7, _covariance(prior, posterior, hyper, i), allow_singular=True
        )
        oracle = K.logpdf(task.y[i].numpy()) - 0.5 * z[i].detach().square().sum()
        assert float(value[i]) == pytest.approx(float(oracle), abs=1e-6)
    assert torch.allclose(value, density.detach(), atol=1e-9)
    # Both informations are on average the covariance of the slope: for data from the model.
    L = torch.linalg.cholesky(torch.as_tensor(_covariance(prior, posterior, hyper, 0)))
    draws = L @ torch.randn(7, 4000, generator=torch.Generator().manual_seed(0), dtype=L.dtype)
    model = HyperPosterior(prior, task.X[:1].expand(4000, -1, -1), draws.T)
    _, slopes, informations = model.derivatives(z[:1].detach().expand(4000, -1))
    scores = slopes + z[0].detach()
    expected = scores.T @ scores / 4000 + torch.eye(p)
    assert torch.allclose(informations.mean(0), expected, atol=0.25, rtol=0.15)
    assert torch.allclose(informations[0], informations[1]) == (many > 0)


def _covariance(
    prior: GPPrior, posterior: HyperPosterior, hyper: Hyperparameters, i: int
) -> np.ndarray:
    X = posterior.X[i]
    K = covariance(prior.kernel, hyper[i], X, X) + prior.mean.scale**2
    noise = hyper.noise_sd[i] ** 2 * torch.eye(len(X), dtype=X.dtype)
    return np.asarray(K + noise)
