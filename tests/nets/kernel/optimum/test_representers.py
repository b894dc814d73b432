import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.optimum.representers import (
    RepresenterConfig,
    _repeated,
    joint_draws,
    representer_points,
)
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator

PRIOR = PRIORS["robust"]


def conditioned_on(task: TaskBatch, prior: GPPrior = PRIOR, count: int = 1) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=count))
    return condition(prior, particles, task.X, task.y)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_draws_are_consistent(task: TaskBatch, name: str) -> None:
    conditioned = conditioned_on(task, PRIORS[name])
    draws = joint_draws(conditioned, RepresenterConfig())
    assert draws.X.shape == (3, 64, 2)
    assert ((draws.X >= 0) & (draws.X <= 1)).all()
    assert torch.allclose(draws.representers.share.sum(2), torch.ones(3, 4, dtype=torch.float64))
    at = conditioned.moments(draws.X)
    assert torch.allclose(at.mean, draws.representers.moments.mean, atol=1e-8)
    assert torch.allclose(at.variance, draws.representers.moments.variance, atol=1e-8)


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
        RepresenterConfig(**{field: value})


def test_as_many_points_as_candidates(task: TaskBatch) -> None:
    config = RepresenterConfig(count=8, num_global=4, num_centres=2, per_centre=1)
    assert representer_points(conditioned_on(task), config).shape == (3, 8, 2)


def test_points_come_close_to_the_true_optimum() -> None:
    config = TaskConfig(batch_size=40, num_queries=1)
    for d, n in ((1, 10), (2, 30)):
        task = TaskStream(PRIOR, 9, config).batch_of(0, d, n)
        draws = joint_draws(conditioned_on(task), RepresenterConfig())
        nearest = (draws.X - task.optimum.x[:, None]).norm(dim=-1).amin(1)
        assert nearest.median() < 0.05


def test_no_point_twice() -> None:
    # A function that rises towards a corner: many candidates are clipped to it.
    X = torch.linspace(0.1, 0.9, 5, dtype=torch.float64)[None, :, None]
    particles = infer_particles(PRIOR, X, 3 * X[..., 0], ParticleConfig(count=4))
    draws = joint_draws(condition(PRIOR, particles, X, 3 * X[..., 0]), RepresenterConfig())
    assert len(set(draws.X.flatten().tolist())) == 64
    assert (draws.X == 1.0).any()


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
    assert joint_draws(conditioned_on(task), RepresenterConfig()).X.shape == (2, 64, 3)
