import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.kernel.particles import (
    FURTHEST,
    HyperPosterior,
    ParticleConfig,
    find_mode,
    infer_particles,
    normal_points,
)
from amortes.prior.gp import PRIORS, GPPrior, Hyperparameters, Kernel, Marginal
from amortes.prior.kernels import covariance
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator

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


def test_the_mode_has_no_slope(task: TaskBatch) -> None:
    posterior = HyperPosterior(PRIORS["robust"], task.X, task.y)
    z, _ = find_mode(posterior, steps=40)
    assert posterior.derivatives(z)[1].abs().max() < 1e-3


def test_moments_agree_with_numeric_integration() -> None:
    # Two free scalars: one lengthscale and the noise; integrate both on a grid.
    prior = PRIORS["robust"]
    for n in (3, 15):
        task = TaskStream(prior, 5, TaskConfig(batch_size=4, num_queries=2)).batch_of(0, 1, n)
        posterior = HyperPosterior(prior, task.X, task.y)
        side = torch.linspace(-4.5, 4.5, 61, dtype=torch.float64)
        grid = torch.cartesian_prod(side, torch.zeros(1, dtype=torch.float64), side)
        weights = posterior.log_density(grid.expand(4, -1, -1)).softmax(-1)
        for column, name in ((0, "lengthscale"), (2, "noise_sd")):
            exact = (weights * grid[:, column]).sum(-1)
            spread = ((weights * grid[:, column].square()).sum(-1) - exact.square()).sqrt()
            particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=256))
            value = getattr(particles.hyper, name).reshape(4, -1)
            marginal: Marginal = getattr(prior, name)
            z = (value.log() - marginal.loc) / marginal.scale
            ours = (particles.log_weights.exp() * z).sum(-1)
            assert ((ours - exact).abs() < 0.25 * spread + 0.05).all()


def test_weights_are_normalised_and_batches_do_not_matter(task: TaskBatch) -> None:
    config = ParticleConfig()
    whole = infer_particles(PRIORS["robust"], task.X, task.y, config)
    assert torch.allclose(whole.log_weights.logsumexp(-1), torch.zeros(3, dtype=torch.float64))
    alone = infer_particles(PRIORS["robust"], task.X[1:2], task.y[1:2], config)
    assert torch.allclose(alone.log_weights, whole.log_weights[1:2], atol=1e-6)


def test_normal_points_are_normal() -> None:
    points = normal_points(3, 4096)
    assert points.mean(0).abs().max() < 0.01
    assert (points.var(0) - 1).abs().max() < 0.02
    assert points.data_ptr() == normal_points(3, 4096).data_ptr()  # kept
    assert torch.equal(normal_points(3, 100), points[:100])


def branin(n: int) -> tuple[Tensor, Tensor]:
    """The function without noise, standardised: X `1 x n x 2`, y `1 x n`."""
    X = torch.rand(1, n, 2, generator=generator(n), dtype=torch.float64)
    u, v = 15.0 * X[..., 0] - 5.0, 15.0 * X[..., 1]
    valley = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6.0
    y = valley.square() + 10 * (1 - 1 / (8 * math.pi)) * u.cos()
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("n", [30, 60])
def test_the_mode_is_found_without_noise(n: int) -> None:
    # From z = 0, a noise sd of 0.05, ten steps get to 0.0003 at best.
    X, y = branin(n)
    posterior = HyperPosterior(PRIORS["robust"], X, y)
    z, _ = find_mode(posterior, steps=ParticleConfig().steps)
    gradient = posterior.derivatives(z)[1].where(z.abs() < FURTHEST, 0.0)  # held there
    assert float(gradient.norm()) < 1.0
    weights = infer_particles(PRIORS["robust"], X, y, ParticleConfig()).log_weights.exp()
    assert float(1.0 / weights.square().sum()) > 3.0


@pytest.mark.parametrize("loc", [-12.0, -14.0])
def test_priors_of_very_little_noise(loc: float) -> None:
    # Fisher matrices of so ill-conditioned covariances are indefinite by rounding.
    quiet = dataclasses.replace(PRIORS["paper"], noise_sd=Marginal.lognormal(loc, 2.0))
    for n, d in ((60, 1), (100, 2)):
        X = torch.rand(1, n, d, generator=generator(n, d), dtype=torch.float64)
        y = (2.0 * X).sin().sum(-1)
        particles = infer_particles(quiet, X, (y - y.mean()) / y.std(), ParticleConfig())
        assert bool(particles.log_weights.isfinite().any())
        assert not bool(particles.log_weights.isnan().any())


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("count", [0, -1]),
        ("prior_share", [-0.1, 1.0, math.nan, 0.97]),  # the last is all of 16
        ("inflation", [0.0, -1.0, math.inf, math.nan]),
        ("steps", [-1]),
    ],
)
def test_invalid_values_name_the_field(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=f"^{field}: must be .* not {value}"):
            ParticleConfig(**{field: value})


def test_the_least_effort_works(task: TaskBatch) -> None:
    config = ParticleConfig(count=1, prior_share=0.0, steps=0)
    assert infer_particles(FREE, task.X, task.y, config).log_weights.tolist() == [[0.0]] * 3
