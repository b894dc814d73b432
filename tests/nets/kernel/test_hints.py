import dataclasses

import pytest
import torch

from amortes.nets.base import Hint
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.hints import PLACES, given_hint, temper
from amortes.nets.kernel.landmarks import LandmarkConfig, find_landmarks, log_kernel_of_maximum
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.prior.gp import PRIORS, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream

PRIOR = PRIORS["robust"]


@pytest.fixture(params=["robust", "real"])
def conditioned(task: TaskBatch, request: pytest.FixtureRequest) -> Conditioned:
    """Four particles."""
    prior = PRIORS[request.param]
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


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
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    given, spread, evidence = given_hint(conditioned, at, Hint(f=f[None]), landmarks)
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


def test_value_only_shares_the_evidence_among_places(
    conditioned: Conditioned, task: TaskBatch
) -> None:
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    f = landmarks.maximum.mean((1, 2))
    mean, _, evidence = given_hint(conditioned, conditioned.moments(task.Xq), Hint(f=f), landmarks)
    assert mean.shape == (3, 4, 9, PLACES)
    total = log_kernel_of_maximum(landmarks, f[:, None]).logsumexp(-1)
    assert torch.allclose(evidence.logsumexp(-1)[..., 0], 0.5 * temper(2) * total[..., 0])
    assert (mean <= f[:, None, None, None] + 1e-9).all()


def test_a_place_that_was_certain_tells_nothing() -> None:
    # Rising towards the corner beyond doubt.
    X = torch.linspace(0.0, 1.0, 12, dtype=torch.float64)[None, :, None]
    y = 2.0 * X[..., 0] - 1.0
    particles = infer_particles(PRIOR, X, y, ParticleConfig(count=1))
    conditioned = condition(PRIOR, particles, X, y)
    Xq = torch.tensor([0.05, 0.33, 0.77], dtype=torch.float64)[None, :, None]
    at = conditioned.moments(Xq)
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    hint = Hint(x=torch.ones(1, 1, dtype=torch.float64))
    mean, sd, log_evidence = given_hint(conditioned, at, hint, landmarks)
    heavy = particles.log_weights[0] > -3
    assert torch.allclose(mean[0, heavy, :, 0], at.mean[0, heavy], atol=2e-3)
    assert torch.allclose(sd[0, heavy, :, 0], at.sd[0, heavy], rtol=2e-2)
    evidence = log_evidence[0, heavy].flatten()
    assert float(evidence.max() - evidence.min()) < 0.05


def test_at_the_optimum_itself_nothing_is_left_to_learn(
    conditioned: Conditioned, task: TaskBatch
) -> None:
    x_star = torch.tensor([[0.4, 0.6]] * 3, dtype=torch.float64)
    f_star = task.optimum.f
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    at = conditioned.moments(x_star[:, None])
    mean, sd, _ = given_hint(conditioned, at, Hint(x_star, f_star), landmarks)
    assert torch.allclose(mean[..., 0, 0], f_star[:, None].expand(3, 4), atol=1e-3)
    assert sd.max() < 0.01


def test_gradients_are_finite_everywhere(conditioned: Conditioned, task: TaskBatch) -> None:
    Xq = torch.cat([task.Xq, task.X, task.optimum.x[:, None]], 1).requires_grad_()
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    for hint in (
        Hint(x=task.optimum.x),
        Hint(f=task.y.amax(1) - 3.0),
        Hint(task.optimum.x, task.optimum.f),
        Hint(task.optimum.x, task.optimum.f - 3.0),
    ):
        mean, sd, _ = given_hint(conditioned, conditioned.moments(Xq), hint, landmarks)
        (mean.sum() + sd.log().sum()).backward()  # type: ignore[no-untyped-call]
        assert Xq.grad is not None
        assert Xq.grad.isfinite().all()
        Xq.grad = None
