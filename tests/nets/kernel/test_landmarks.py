import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.landmarks import (
    LandmarkConfig,
    _repeated,
    find_landmarks,
    log_kernel_of_maximum,
)
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator

PRIOR = PRIORS["robust"]


def conditioned_on(task: TaskBatch, prior: GPPrior = PRIOR) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_draws_are_consistent(task: TaskBatch, name: str) -> None:
    conditioned = conditioned_on(task, PRIORS[name])
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    assert landmarks.X.shape == (3, 64, 2)
    assert ((landmarks.X >= 0) & (landmarks.X <= 1)).all()
    assert torch.allclose(landmarks.share.sum(2), torch.ones(3, 4, dtype=torch.float64))
    at = conditioned.moments(landmarks.X)
    assert torch.allclose(at.mean, landmarks.moments.mean, atol=1e-8)
    assert torch.allclose(at.variance, landmarks.moments.variance, atol=1e-8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", 1),
        ("count", 329),
        ("num_global", 0),
        ("num_centres", 0),
        ("per_centre", 0),
        ("draws", 1),
        ("optima", 0),
    ],
)
def test_invalid_values_name_the_field(field: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{field}: .* not {value}"):
        LandmarkConfig(**{field: value})


def test_as_many_landmarks_as_candidates(task: TaskBatch) -> None:
    config = LandmarkConfig(count=8, num_global=4, num_centres=2, per_centre=1)
    assert find_landmarks(conditioned_on(task), config).X.shape == (3, 8, 2)


def test_landmarks_come_close_to_the_true_optimum() -> None:
    config = TaskConfig(batch_size=40, num_queries=1)
    for d, n in ((1, 10), (2, 30)):
        task = TaskStream(PRIOR, 9, config).batch_of(0, d, n)
        landmarks = find_landmarks(conditioned_on(task), LandmarkConfig())
        nearest = (landmarks.X - task.optimum.x[:, None]).norm(dim=-1).amin(1)
        assert nearest.median() < 0.05


def test_density_of_the_maximum_against_many_draws(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    landmarks = find_landmarks(conditioned, LandmarkConfig(draws=2000))
    # The density is that of the draws, smoothed: it integrates to one and has their mean.
    grid = torch.linspace(-6, 8, 4001, dtype=torch.float64)
    kernels = [log_kernel_of_maximum(landmarks, f.expand(3, 1))[:, :, 0] for f in grid]
    density = torch.stack([k.exp().mean(-1) for k in kernels])
    total = density.sum(0) * (grid[1] - grid[0])
    assert torch.allclose(total, torch.ones_like(total), atol=1e-3)
    density = density / density.sum(0)
    mean = (density * grid[:, None, None]).sum(0)
    assert torch.allclose(mean, landmarks.maximum.mean(-1), atol=5e-3)
    spread = (density * (grid[:, None, None] - mean).square()).sum(0).sqrt()
    assert (spread >= landmarks.maximum.std(-1)).all()
    assert (spread < 1.2 * landmarks.maximum.std(-1) + 0.03).all()


def test_no_point_twice() -> None:
    # A function that rises towards a corner: many candidates are clipped to it.
    X = torch.linspace(0.1, 0.9, 5, dtype=torch.float64)[None, :, None]
    particles = infer_particles(PRIOR, X, 3 * X[..., 0], ParticleConfig(count=4))
    landmarks = find_landmarks(condition(PRIOR, particles, X, 3 * X[..., 0]), LandmarkConfig())
    assert len(set(landmarks.X.flatten().tolist())) == 64
    assert (landmarks.X == 1.0).any()


@pytest.mark.parametrize("count", [329, 330, 331])
@pytest.mark.parametrize("d", [1, 6, 16])
def test_equal_points_are_recognised_wherever_they_are(count: int, d: int) -> None:
    # Products of matrices may round the last rows differently from the others.
    X = torch.rand(1, count // 2, d, generator=generator(d), dtype=torch.float64)
    twice = torch.cat([X, X.flip(1), X[:, : count % 2]], dim=1)
    again = _repeated(twice)
    assert not bool(again[:, : count // 2].any())
    assert bool(again[:, count // 2 :].all())


def test_few_observations_are_enough() -> None:
    task = TaskStream(PRIOR, 9, TaskConfig(batch_size=2, num_queries=3)).batch_of(0, 3, 1)
    assert find_landmarks(conditioned_on(task), LandmarkConfig()).X.shape == (2, 64, 3)


@pytest.mark.parametrize("d", [1, 20])
def test_any_dimension(d: int) -> None:
    prior = GPPrior(max_dim=20)
    task = TaskStream(prior, 1, TaskConfig(batch_size=2, num_queries=3)).batch_of(0, d, 4)
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=4))
    landmarks = find_landmarks(condition(prior, particles, task.X, task.y), LandmarkConfig())
    assert landmarks.maximum.isfinite().all()
