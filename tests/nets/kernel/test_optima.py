import dataclasses

import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.landmarks import LandmarkConfig, find_landmarks
from amortes.nets.kernel.optima import choose_draws, refine
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
    assert draw.tolist() == [list(range(8))] * 2
    _, draw = choose_draws(log_weights, 8, 3)
    assert draw.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1]] * 2


def test_optima_against_exact_draws_on_a_grid() -> None:
    """Known hyperparameters in 1-D: the optima are distributed as those of exact draws."""
    prior = dataclasses.replace(PRIORS["paper-1d"], lengthscale=Marginal.fixed(0.2), name="custom")
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 3)
    conditioned = conditioned_on(prior, task)
    found = find_landmarks(conditioned, LandmarkConfig(draws=64, optima=256)).optima
    grid = torch.linspace(0, 1, 401, dtype=torch.float64)[None, :, None]
    at = conditioned.moments(grid)
    cov = conditioned.covariance(at, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-8 * torch.eye(401, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(401, 20_000, generator=rng, dtype=torch.float64)
    f, index = (at.mean[0, 0][:, None] + L @ noise).max(0)
    x = grid[0, index, 0]
    for ours, exact in ((found.f[0], f), (found.x[0, :, 0], x)):
        levels = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], dtype=torch.float64)
        below = (ours[:, None] <= exact.quantile(levels)).double().mean(0)
        assert torch.allclose(below, levels, atol=0.1)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_maxima_are_not_biased_by_the_landmarks(name: str) -> None:
    """In four dimensions functions are higher between landmarks than on them."""
    prior = PRIORS[name]
    task = TaskStream(prior, 5, TaskConfig(batch_size=64, num_queries=1)).batch_of(0, 4, 15)
    conditioned = conditioned_on(prior, task, 16)
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    surprise = (task.optimum.f - landmarks.optima.f.mean(1)) / landmarks.optima.f.std(1)
    # 0.15 is its standard error, and with many datasets it is 0.2 to 0.4: interpolation misses a
    # little of what is between landmarks.
    assert surprise.mean().abs() < 0.5
    assert ((landmarks.optima.x >= 0) & (landmarks.optima.x <= 1)).all()
    weights = conditioned.particles.log_weights.exp()
    mean = (weights * landmarks.highest).sum(1)
    assert float((mean - landmarks.optima.f.mean(1)).abs().median()) < 0.1


def test_few_draws_of_many_particles_are_independent() -> None:
    """Of many particles with a draw each, the normals behind these are spread like normals."""
    prior = PRIORS["robust"]
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 4, 5)
    landmarks = find_landmarks(conditioned_on(prior, task, 16), LandmarkConfig())
    k = landmarks.draws.normals.shape[0]
    even = torch.full((1, k), 1.0 / k, dtype=torch.float64).log()
    particle, draw = choose_draws(even, 32, landmarks.draws.normals.shape[1])
    normals = landmarks.draws.normals[particle[0], draw[0]]  # 32 x m
    # Of the first draw of each particle the median would be below 0.1.
    assert normals.std(0).median() > 0.8
    assert normals.mean(0).abs().median() < 0.2


def test_refined_maxima_are_those_of_the_interpolated_draws(warped: TaskBatch) -> None:
    """The interpolation by hand, in the coordinates of the cube: values, zero slopes, no rise."""
    prior = PRIORS["real"]
    conditioned = conditioned_on(prior, warped, 1)
    landmarks = find_landmarks(conditioned, LandmarkConfig(count=16))
    k = conditioned.particles.log_weights.shape[1]
    particle = torch.arange(k).repeat(3, 4)
    draw = torch.arange(4).repeat_interleave(k).expand(3, -1)
    X, at, draws = landmarks.X, landmarks.moments, landmarks.draws
    found = refine(conditioned, X, at, draws, particle, draw)

    def path(x: Tensor) -> Tensor:
        """Each draw at a point of its own, x `b x s x d`: `b x s`."""
        values = []
        for i, (p, t) in enumerate(zip(particle[0].tolist(), draw[0].tolist(), strict=True)):
            there = conditioned.moments(x[:, i : i + 1])
            cross = conditioned.covariance(there, at)[:, p]  # b x 1 x m
            # The draw on the landmarks is m + L z, their covariance with jitter L L'.
            root = draws.root[:, p]
            offset = (root @ draws.normals[p, t])[..., None]
            weights = torch.cholesky_solve(offset, root)
            values.append(there.mean[:, p, 0] + (cross @ weights)[:, 0, 0])
        return torch.stack(values, dim=1)

    x = found.x.clone().requires_grad_()
    f = path(x)
    assert torch.allclose(f, found.f, atol=1e-5)
    start = X[torch.arange(3)[:, None], draws.place[torch.arange(3)[:, None], particle, draw]]
    assert (f >= path(start) - 1e-6).all()
    (slope,) = torch.autograd.grad(f.sum(), x)
    inside = (found.x > 1e-4) & (found.x < 1.0 - 1e-4)
    spread = at.mean.std()
    assert inside.any()
    assert slope[inside].abs().median() < 0.01 * spread
