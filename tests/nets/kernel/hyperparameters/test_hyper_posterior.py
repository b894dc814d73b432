import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.hyperparameters import hyper_posterior
from amortes.nets.kernel.hyperparameters.hyper_posterior import (
    HyperPosterior,
    hyperparameters,
    observed_covariance,
)
from amortes.prior.gp import PRIORS, GPPrior, Marginal
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
    posterior = HyperPosterior(prior, task.X.numpy(), task.y.numpy())
    p = posterior.p
    assert p == 4 + (4 if prior.warped else 0) + (1 if prior.kernel == "mixed" else 0)
    z = torch.tensor([latents(prior)] * 3, dtype=torch.float64).requires_grad_()
    value, gradient, _ = posterior.derivatives(z.detach().numpy())
    density = by_autograd(prior, z, task)
    (expected,) = torch.autograd.grad(density.sum(), z)
    assert gradient == pytest.approx(expected.numpy(), abs=1e-8)
    assert value == pytest.approx(density.detach().numpy(), abs=1e-6)
    row = z.detach().numpy()
    assert posterior.log_density(row[:, None])[:, 0] == pytest.approx(value, abs=1e-9)
    others = np.stack([task.y.numpy(), 2.0 * task.y.numpy()], axis=1)
    both = posterior.log_density(row[:, None], Y=others)[:, 0]
    assert both[:, 0] == pytest.approx(value, abs=1e-9)
    assert both[:, 1] == pytest.approx(
        posterior.with_results(2.0 * task.y.numpy()).derivatives(row)[0], abs=1e-9
    )
    # Both informations are on average the covariance of the slope: for data from the model.
    hyper = hyperparameters(prior, row, 2)[0]
    L = torch.linalg.cholesky(observed_covariance(prior, hyper, task.X[0]))
    draws = L @ torch.randn(7, 4000, generator=torch.Generator().manual_seed(0), dtype=L.dtype)
    model = HyperPosterior(prior, task.X[:1].expand(4000, -1, -1).numpy(), draws.T.numpy())
    _, slopes, informations = model.derivatives(np.repeat(row[:1], 4000, axis=0))
    scores = slopes + row[0]
    covariance = scores.T @ scores / 4000 + np.eye(p)
    np.testing.assert_allclose(informations.mean(0), covariance, atol=0.25, rtol=0.15)
    assert np.allclose(informations[0], informations[1]) == (many > 0)


def latents(prior: GPPrior) -> list[float]:
    """Coordinates z of this prior in two dimensions."""
    row = [0.3, -0.5, 0.4, 0.8, 0.6, -0.3, -0.7, 0.5, 0.2]
    used = row if prior.warped else [*row[:4], *row[8:]]
    return used if prior.kernel == "mixed" else used[:-1]


def by_autograd(prior: GPPrior, z: Tensor, task: TaskBatch) -> Tensor:
    """The log posterior at z, `b x p`, in PyTorch: `b`."""
    whole = torch.cat([z[:, :4], torch.zeros_like(z[:, :1]), z[:, 4:]], dim=-1)
    hyper = prior.hyperparameters(whole, 2)
    K = covariance(prior.kernel, hyper, task.X, task.X) + prior.mean.scale**2
    K = K + hyper.noise_sd.square()[:, None, None] * torch.eye(7, dtype=z.dtype)
    normal = torch.distributions.MultivariateNormal(torch.zeros(7, dtype=z.dtype), K)
    likelihood: Tensor = normal.log_prob(task.y)  # type: ignore[no-untyped-call]
    return likelihood - 0.5 * z.square().sum(-1)


@pytest.mark.parametrize("many", [0, 64])
def test_datasets_without_warps_are_those_of_the_model_without(
    monkeypatch: pytest.MonkeyPatch, task: TaskBatch, many: int
) -> None:
    monkeypatch.setattr(hyper_posterior, "MANY", many)
    prior = PRIORS["real"]
    (_, plain), (_, warped) = prior.models
    X, y = task.X.numpy(), task.y.numpy()
    posterior = HyperPosterior(prior, X, y, np.array([True, False, True]))
    z = np.array([latents(warped)] * 3) * posterior.active
    value, gradient, information = posterior.derivatives(z)
    with_warp = HyperPosterior(warped, X, y).derivatives(np.array([latents(warped)] * 3))
    without = HyperPosterior(plain, X, y).derivatives(np.array([latents(plain)] * 3))
    ours = [0, 1, 2, 3, 8]
    for i in (0, 2):
        for mine, theirs in zip((value, gradient, information), with_warp, strict=True):
            np.testing.assert_allclose(mine[i], theirs[i], rtol=1e-9, atol=1e-9)
    assert value[1] == pytest.approx(without[0][1])
    np.testing.assert_allclose(gradient[1, ours], without[1][1], atol=1e-9)
    np.testing.assert_allclose(information[1][np.ix_(ours, ours)], without[2][1], atol=1e-9)
    assert (gradient[1, 4:8] == 0.0).all()
    assert (information[1, 4:8] == np.eye(9)[4:8]).all()
    part = posterior.rows(np.array([1]))
    assert part.derivatives(z[1:2])[0] == pytest.approx(value[1:2])


def test_noise_is_never_less_than_can_be_computed_with(task: TaskBatch) -> None:
    prior, X = PRIORS["real"], task.X[:1]
    posterior = HyperPosterior(prior, X.numpy(), task.y[:1].numpy())
    z = np.zeros((1, 1, posterior.p))
    z[..., posterior.d + 1] = -8.0
    hyper = hyperparameters(prior, z[:, 0], posterior.d)
    assert float(hyper.noise_sd) == hyper_posterior.LEAST_NOISE_SD
    root = torch.from_numpy(posterior.root(z)[:, 0])
    assert torch.allclose(root @ root.mT, observed_covariance(prior, hyper, X), rtol=1e-12)
