import pytest
import torch

from amortes.nets.base import Hint
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.hints import start
from amortes.nets.kernel.landmarks import LandmarkConfig, find_landmarks, log_density_of_maximum
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch

PRIOR = PRIORS["robust"]


@pytest.fixture
def conditioned(task: TaskBatch) -> Conditioned:
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=3))
    return condition(PRIOR, particles, task.X, task.y)


def joint(
    conditioned: Conditioned, x: torch.Tensor, x_star: torch.Tensor, count: int
) -> torch.Tensor:
    """Draws of f(x), f(x*) and f around x* for dataset 0, particle 0: `count x (2 + 2d)`."""
    d = x.shape[-1]
    h = 1e-3
    around = torch.cat([x_star + h * torch.eye(d), x_star - h * torch.eye(d)])
    points = torch.cat([x[None], x_star[None], around])[None].expand(3, -1, -1)
    at = conditioned.moments(points)
    cov = conditioned.covariance(points, at, points, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-11 * torch.eye(len(cov)))
    noise = torch.randn(len(cov), count, generator=torch.Generator().manual_seed(1), dtype=L.dtype)
    draws: torch.Tensor = (at.mean[0, 0][:, None] + L @ noise).T
    return draws


def test_nothing_known_changes_nothing(conditioned: Conditioned, task: TaskBatch) -> None:
    at = conditioned.moments(task.Xq)
    for hint in (None, Hint()):
        begin = start(conditioned, task.Xq, at, hint)
        assert torch.equal(begin.mean, at.mean)
        assert torch.equal(begin.sd, at.sd)


def test_value_only_is_a_truncated_normal(conditioned: Conditioned, task: TaskBatch) -> None:
    at = conditioned.moments(task.Xq)
    f = (at.mean + 0.3 * at.sd)[:, 0, 0]
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    begin = start(conditioned, task.Xq, at, Hint(f=f), landmarks)
    draws = joint(conditioned, task.Xq[0, 0], task.optimum.x[0], 200_000)[:, 0]
    kept = draws[draws <= f[0]]
    error = 5 * kept.std() / len(kept) ** 0.5
    assert begin.mean[0, 0, 0] == pytest.approx(float(kept.mean()), abs=float(error) + 1e-6)
    assert begin.sd[0, 0, 0] == pytest.approx(float(kept.std()), rel=0.02)
    assert torch.equal(begin.log_evidence[..., 0], log_density_of_maximum(landmarks, f))


@pytest.mark.parametrize("place", ["interior", "edge"])
def test_place_only_conditions_on_slope_and_order(
    conditioned: Conditioned, task: TaskBatch, place: str
) -> None:
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    x_star = torch.tensor([[0.4, 0.6 if place == "interior" else 1.0]] * 3, dtype=torch.float64)
    at = conditioned.moments(task.Xq)
    begin = start(conditioned, task.Xq, at, Hint(x=x_star), landmarks)
    # Oracle: exact Gaussian conditioning on finite differences, then rejection.
    draws = joint(conditioned, task.Xq[0, 3], x_star[0], 400_000)
    slopes = (draws[:, 2:4] - draws[:, 4:6]) / 2e-3
    if place == "edge":
        slopes = slopes[:, :1]
    pair = draws[:, :2]
    joint_cov = torch.cov(torch.cat([pair, slopes], 1).T)
    gain = torch.linalg.solve(joint_cov[2:, 2:], joint_cov[2:, :2])
    pair = pair - slopes @ gain
    kept = pair[pair[:, 0] <= pair[:, 1], 0]
    assert begin.mean[0, 0, 3] == pytest.approx(float(kept.mean()), abs=0.02)
    assert begin.sd[0, 0, 3] == pytest.approx(float(kept.std()), rel=0.05)


def test_both_condition_on_the_value_too(conditioned: Conditioned, task: TaskBatch) -> None:
    x_star = torch.tensor([[0.4, 0.6]] * 3, dtype=torch.float64)
    f_star = task.optimum.f
    at = conditioned.moments(task.Xq)
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    begin = start(conditioned, task.Xq, at, Hint(x_star, f_star), landmarks)
    draws = joint(conditioned, task.Xq[0, 3], x_star[0], 400_000)
    slopes = (draws[:, 2:4] - draws[:, 4:6]) / 2e-3
    known = torch.cat([draws[:, 1:2] - f_star[0], slopes], 1)
    cov = torch.cov(torch.cat([draws[:, :1], known], 1).T)
    f = draws[:, 0] - known @ torch.linalg.solve(cov[1:, 1:], cov[1:, 0])
    kept = f[f <= f_star[0]]
    assert begin.mean[0, 0, 3] == pytest.approx(float(kept.mean()), abs=0.02)
    assert begin.sd[0, 0, 3] == pytest.approx(float(kept.std()), rel=0.05)
    # At x* itself nothing is left to learn.
    at_star = conditioned.moments(x_star[:, None])
    there = start(conditioned, x_star[:, None], at_star, Hint(x_star, f_star), landmarks)
    assert (there.mean[..., 0] <= f_star[:, None] + 1e-6).all()
    assert there.sd.max() < 0.01


def test_gradients_are_finite_everywhere(conditioned: Conditioned, task: TaskBatch) -> None:
    Xq = torch.cat([task.Xq, task.X, task.optimum.x[:, None]], 1).requires_grad_()
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    for hint in (
        Hint(x=task.optimum.x),
        Hint(f=task.y.amax(1) - 3.0),
        Hint(task.optimum.x, task.optimum.f),
    ):
        begin = start(conditioned, Xq, conditioned.moments(Xq), hint, landmarks)
        (begin.mean.sum() + begin.sd.log().sum() + begin.log_evidence.sum()).backward()  # type: ignore[no-untyped-call]
        assert Xq.grad is not None
        assert Xq.grad.isfinite().all()
        Xq.grad = None
