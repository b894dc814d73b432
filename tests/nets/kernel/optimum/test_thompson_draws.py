import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import condition
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig, normal_points
from amortes.nets.kernel.optimum.representers import RepresenterConfig, representer_points
from amortes.nets.kernel.optimum.thompson_draws import ThompsonPaths, choose_draws, thompson_draws
from amortes.prior.gp import PRIORS, GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.prior.warp import unwarp, warp
from amortes.random import generator
from tests.nets.kernel.optimum.test_representers import conditioned_on


@pytest.mark.parametrize("d", [1, 20])
def test_any_dimension(d: int) -> None:
    prior = GPPrior(max_dim=20)
    task = TaskStream(prior, 1, TaskConfig(batch_size=2, num_queries=3)).batch_of(0, d, 4)
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=4))
    draws = thompson_draws(condition(prior, particles, task.X, task.y), RepresenterConfig())
    assert draws.maximum.isfinite().all()


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
    conditioned = conditioned_on(task, prior, 4)
    found = thompson_draws(conditioned, RepresenterConfig(draws=64, optima=256)).optima
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
def test_maxima_are_not_biased_by_the_points(name: str) -> None:
    """In four dimensions functions are higher between representer points than on them."""
    prior = PRIORS[name]
    task = TaskStream(prior, 5, TaskConfig(batch_size=64, num_queries=1)).batch_of(0, 4, 15)
    conditioned = conditioned_on(task, prior, 16)
    draws = thompson_draws(conditioned, RepresenterConfig())
    surprise = (task.optimum.f - draws.optima.f.mean(1)) / draws.optima.f.std(1)
    # 0.15 is its standard error, and with 200 datasets it is 0.3: draws still miss a little of what
    # is between the points.
    assert surprise.mean().abs() < 0.5
    assert ((draws.optima.x >= 0) & (draws.optima.x <= 1)).all()
    weights = conditioned.particles.log_weights.exp()
    mean = (weights * draws.representers.max_mean).sum(1)
    assert float((mean - draws.optima.f.mean(1)).abs().median()) < 0.1


def test_few_draws_of_many_particles_are_independent() -> None:
    """Of many particles with a draw each, the normals behind these are spread like normals."""
    k, t, m = 24, 64, 64
    even = torch.full((1, k), 1.0 / k, dtype=torch.float64).log()
    particle, draw = choose_draws(even, 32, t)
    normals = normal_points(m, k * t).reshape(k, t, m)[particle[0], draw[0]]  # 32 x m
    # Of the first draw of each particle the median would be below 0.1.
    assert normals.std(0).median() > 0.8
    assert normals.mean(0).abs().median() < 0.2


def some_paths(task: TaskBatch) -> tuple[ThompsonPaths, Tensor, Tensor]:
    """Two draws for each of four particles on 16 points X, `b x 16 x d`, and factors L."""
    conditioned = conditioned_on(task, PRIORS["real"])
    X = representer_points(conditioned, RepresenterConfig(count=16))
    at = conditioned.moments(X)
    jitter = 1e-6 * conditioned.prior_variance[..., None, None] * torch.eye(16, dtype=X.dtype)
    root = torch.linalg.cholesky(conditioned.covariance(at, at) + jitter)
    particle = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3]).expand(3, 8)
    normals = torch.randn(3, 8, 16, generator=generator(0), dtype=torch.float64)
    return ThompsonPaths(conditioned, at, root, particle, normals), X, root


@pytest.mark.parametrize("more", [False, True])
def test_climbs_end_at_maxima_of_the_interpolated_draws(warped: TaskBatch, more: bool) -> None:
    """The interpolation by hand, in the coordinates of the cube: values, zero slopes, no rise."""
    paths, X, root = some_paths(warped)
    conditioned, hyper = paths.conditioned, paths.hyper
    rows, particle = torch.arange(3)[:, None], torch.from_numpy(paths.particle)
    offset = root[rows, particle] @ torch.from_numpy(paths.normals)[..., None]
    points, values = X, (paths.at.mean[rows, particle] + offset.squeeze(-1))
    continued = None
    if more:
        V = conditioned.scale(warped.Xq)[rows, particle].numpy()
        normals = torch.randn(3, 8, 9, generator=generator(1), dtype=torch.float64)
        continued = paths.continued(V, normals.numpy())
        points = torch.cat([X, warped.Xq], dim=1)
        values = torch.cat([values, torch.from_numpy(continued.values)], dim=-1)
    start = points[rows, values.argmax(-1)]
    at = conditioned.moments(points)
    jitter = 1e-6 * conditioned.prior_variance[..., None, None]
    covariance = conditioned.covariance(at, at) + jitter * torch.eye(points.shape[1]).double()
    above = (values - at.mean[rows, particle])[..., None]
    beta = torch.linalg.solve(covariance[rows, particle], above).squeeze(-1)
    assert hyper.warp is not None
    u, f = paths.climb(warp(start[:, :, None], hyper.warp).squeeze(2), continued)
    found = unwarp(u[:, :, None], hyper.warp).squeeze(2)

    def path(x: Tensor) -> Tensor:
        """Each draw at a point of its own, x `b x s x d`: `b x s`."""
        values = []
        for i in range(x.shape[1]):
            there, p = conditioned.moments(x[:, i : i + 1]), int(particle[0, i])
            cross = conditioned.covariance(there, at)[:, p, 0]  # b x m
            values.append(there.mean[:, p, 0] + (cross * beta[:, i]).sum(-1))
        return torch.stack(values, dim=1)

    x = found.clone().requires_grad_()
    value = path(x)
    assert torch.allclose(value, f, atol=1e-5)
    assert (value >= path(start) - 1e-6).all()
    (slope,) = torch.autograd.grad(value.sum(), x)
    inside = (found > 1e-4) & (found < 1.0 - 1e-4)
    assert inside.any()
    assert slope[inside].abs().median() < 0.01 * at.mean.std()


def test_draws_are_continued_exactly(warped: TaskBatch) -> None:
    """On all points together they have the mean and covariance of the posterior."""
    paths, _, root = some_paths(warped)
    conditioned, rows = paths.conditioned, torch.arange(3)[:, None]
    particle = torch.from_numpy(paths.particle)
    V = conditioned.scale(warped.Xq)
    more = paths.continued(V[rows, particle].numpy(), np.zeros((3, 8, 9)))
    along, own = (torch.from_numpy(t) for t in (more.along, more.own))
    everything = conditioned.moments_at(torch.cat([paths.at.V, V], dim=2))
    covariance = conditioned.covariance(everything, everything)[rows, particle]
    with_points = along @ root[rows, particle].mT
    assert torch.allclose(with_points, covariance[..., 16:, :16], atol=1e-5)
    left = along @ along.mT + own @ own.mT
    assert torch.allclose(left, covariance[..., 16:, 16:], atol=1e-5)
    offset = (along @ torch.from_numpy(paths.normals)[..., None]).squeeze(-1)
    mean = everything.mean[rows, particle][..., 16:]
    assert torch.allclose(torch.from_numpy(more.values), mean + offset)
    assert own.triu(1).abs().max() == 0.0


def test_the_likeliest_points(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    draws = thompson_draws(conditioned, RepresenterConfig())
    few = draws.likeliest(conditioned, 5)
    share = (conditioned.weights[..., None] * draws.representers.share).sum(1)
    for i in range(3):
        best = share[i].argsort(descending=True)[:5]
        V = draws.representers.moments.V[i][:, best]
        distance = (few.moments.V[i][:, :, None] - V[:, None]).norm(dim=-1)  # k x 5 x 5
        # Ties may be broken differently.
        assert (distance.amin(-1) < 1e-9).double().mean() >= 0.8
    assert torch.allclose(few.share.sum(-1), torch.ones(3, 4, dtype=torch.float64))
    everything = draws.likeliest(conditioned, 100)
    assert everything.share.shape == draws.representers.share.shape
