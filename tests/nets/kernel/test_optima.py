import dataclasses

import torch

from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.landmarks import LandmarkConfig, find_landmarks
from amortes.nets.kernel.optima import choose_draws
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.prior.gp import PRIORS, GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


def conditioned_on(prior: GPPrior, task: TaskBatch, count: int = 4) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=count))
    return condition(prior, particles, task.X, task.y)


def test_draws_follow_the_weights() -> None:
    log_weights = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]]).log()
    particle, draw = choose_draws(log_weights, 8, 32)
    assert particle.tolist() == [[0, 0, 0, 0, 1, 1, 2, 2], [3] * 8]
    assert draw.tolist() == [[0, 1, 2, 3, 0, 1, 0, 1], list(range(8))]
    level = torch.tensor([0.99, 0.0])
    particle, draw = choose_draws(log_weights, 4, 32, level, skip=4)
    assert particle.tolist() == [[0, 0, 1, 2], [3] * 4]
    assert draw.tolist() == [[4, 5, 4, 4], [4, 5, 6, 7]]


def test_optima_against_exact_draws_on_a_grid() -> None:
    """Known hyperparameters in 1-D: the optima are distributed as those of exact draws."""
    prior = dataclasses.replace(PRIORS["paper-1d"], lengthscale=Marginal.fixed(0.2), name="custom")
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 3)
    conditioned = conditioned_on(prior, task)
    found = find_landmarks(conditioned, LandmarkConfig(draws=64, optima=256)).optima
    grid = torch.linspace(0, 1, 401, dtype=torch.float64)[None, :, None]
    at = conditioned.moments(grid)
    cov = conditioned.covariance(grid, at, grid, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-8 * torch.eye(401, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(401, 20_000, generator=rng, dtype=torch.float64)
    f, index = (at.mean[0, 0][:, None] + L @ noise).max(0)
    x = grid[0, index, 0]
    for ours, exact in ((found.f[0], f), (found.x[0, :, 0], x)):
        levels = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], dtype=torch.float64)
        below = (ours[:, None] <= exact.quantile(levels)).double().mean(0)
        assert torch.allclose(below, levels, atol=0.1)


def test_maxima_are_not_biased_by_the_landmarks() -> None:
    """In four dimensions functions are higher between landmarks than on them."""
    prior = PRIORS["robust"]
    task = TaskStream(prior, 5, TaskConfig(batch_size=64, num_queries=1)).batch_of(0, 4, 15)
    conditioned = conditioned_on(prior, task, 16)
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    surprise = (task.optimum.f - landmarks.optima.f.mean(1)) / landmarks.optima.f.std(1)
    assert surprise.mean().abs() < 0.35  # 0.13 is its standard error
    assert ((landmarks.optima.x >= 0) & (landmarks.optima.x <= 1)).all()
    weights = conditioned.particles.log_weights.exp()
    mean = (weights * landmarks.highest).sum(1)
    assert float((mean - landmarks.optima.f.mean(1)).abs().median()) < 0.1
