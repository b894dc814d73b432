import dataclasses

import torch

from amortes.nets.base import Hint
from amortes.nets.kernel.conditioning import condition
from amortes.nets.kernel.gains.drawn_gains import given_hint
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.optimum.given_optimum import EVIDENCE
from amortes.nets.kernel.optimum.max_value import PLACES, log_kernel_of_maximum
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.prior.gp import PRIORS, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from tests.nets.kernel.optimum.test_local_maximum import conditioned_on


def test_value_only_against_functions_with_that_maximum() -> None:
    """Known hyperparameters in 1-D: exact draws on a grid, those whose maximum is close to f*."""
    prior = dataclasses.replace(PRIORS["paper-1d"], lengthscale=Marginal.fixed(0.2), name="custom")
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 3)
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=16))
    conditioned = condition(prior, particles, task.X, task.y)
    grid = torch.linspace(0, 1, 201, dtype=torch.float64)[None, :, None]
    at = conditioned.moments(grid)
    cov = conditioned.covariance(at, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-8 * torch.eye(201, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(201, 60_000, generator=rng, dtype=torch.float64)
    draws = (at.mean[0, 0][:, None] + L @ noise).T
    highest = draws.amax(1)
    f = highest.quantile(0.95)
    kept = draws[(highest - f).abs() < 0.08 * highest.std()]
    assert len(kept) > 300
    found = thompson_draws(conditioned, RepresenterConfig())
    given, spread, evidence = given_hint(conditioned, grid, Hint(f=f[None]), found)
    # All particles are the same; their draws of the maximum are not.
    weight = evidence.expand_as(given)[0].movedim(1, 0).flatten(1).softmax(-1)
    means, sds = (t[0].movedim(1, 0).flatten(1) for t in (given, spread))
    mean = (weight * means).sum(-1)
    square = (weight * (sds.square() + means.square())).sum(-1)
    sd = (square - mean.square()).sqrt()
    before = at.sd[0, 0]
    # Of the change that the hint makes, most is found.
    error = ((mean - kept.mean(0)) / before).square().mean()
    moved = ((at.mean[0, 0] - kept.mean(0)) / before).square().mean()
    assert error < 0.5 * moved
    narrower = (kept.std(0) / before).log()
    assert ((sd / before).log() - narrower).square().mean() < 0.5 * narrower.square().mean()


def test_value_only_shares_the_evidence_among_places(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    draws = thompson_draws(conditioned, RepresenterConfig())
    f = draws.maximum.mean((1, 2))
    mean, _, evidence = given_hint(conditioned, task.Xq, Hint(f=f), draws)
    assert mean.shape == (3, 4, 9, PLACES)
    total = log_kernel_of_maximum(draws.maximum, f[:, None]).logsumexp(-1)
    assert torch.allclose(evidence.logsumexp(-1)[..., 0], EVIDENCE * total[..., 0])
    assert (mean <= f[:, None, None, None] + 1e-9).all()


def test_density_of_the_maximum_against_many_draws(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    maximum = thompson_draws(conditioned, RepresenterConfig(draws=2000)).maximum
    # The density is that of the draws, smoothed: it integrates to one and has their mean.
    grid = torch.linspace(-6, 8, 4001, dtype=torch.float64)
    kernels = [log_kernel_of_maximum(maximum, f.expand(3, 1))[:, :, 0] for f in grid]
    density = torch.stack([k.exp().mean(-1) for k in kernels])
    total = density.sum(0) * (grid[1] - grid[0])
    assert torch.allclose(total, torch.ones_like(total), atol=1e-3)
    density = density / density.sum(0)
    mean = (density * grid[:, None, None]).sum(0)
    assert torch.allclose(mean, maximum.mean(-1), atol=5e-3)
    spread = (density * (grid[:, None, None] - mean).square()).sum(0).sqrt()
    assert (spread >= maximum.std(-1)).all()
    assert (spread < 1.2 * maximum.std(-1) + 0.03).all()
