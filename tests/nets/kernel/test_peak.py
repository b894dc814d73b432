import math

import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.nets.kernel.peak import Peak, peak_at
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream

STEP = 5e-3


def conditioned_on(task: TaskBatch, prior: GPPrior = PRIORS["robust"]) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=3))
    return condition(prior, particles, task.X, task.y)


def peak(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> Peak:
    return peak_at(conditioned, X, conditioned.moments(X), x_star)


def draw(conditioned: Conditioned, points: Tensor, count: int) -> Tensor:
    """Draws of f at points `p x d` for dataset 0, particle 0: `count x p`."""
    X = points[None].expand(len(conditioned.X), -1, -1)
    at = conditioned.moments(X)
    cov = conditioned.covariance(X, at, X, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-11 * torch.eye(len(cov)))
    noise = torch.randn(len(cov), count, generator=torch.Generator().manual_seed(1), dtype=L.dtype)
    draws: Tensor = (at.mean[0, 0][:, None] + L @ noise).T
    return draws


def joint(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f(X), f(x*), its slopes and curvatures: dataset 0, particle 0.

    Derivatives are finite differences of the exact posterior.
    """
    p, d = X.shape
    steps = STEP * torch.eye(d, dtype=torch.float64)
    points = torch.cat([X, x_star[None], x_star + steps, x_star - steps])
    batch = points[None].expand(len(conditioned.X), -1, -1)
    at = conditioned.moments(batch)
    cov = conditioned.covariance(batch, at, batch, at)[0, 0]
    D = torch.zeros(p + 1 + 2 * d, len(points), dtype=torch.float64)
    D[: p + 1, : p + 1] = torch.eye(p + 1)
    for i in range(d):
        up, down = p + 1 + i, p + 1 + d + i
        D[p + 1 + i, [up, down]] = torch.tensor([0.5, -0.5], dtype=D.dtype) / STEP
        D[p + 1 + d + i, [up, p, down]] = torch.tensor([1.0, -2.0, 1.0], dtype=D.dtype) / STEP**2
    return D @ at.mean[0, 0], D @ cov @ D.T


def given_zero(mean: Tensor, cov: Tensor, known: list[int]) -> tuple[Tensor, Tensor]:
    """Mean and covariance given that the entries `known` are zero."""
    gain = torch.linalg.solve(cov[known][:, known], cov[known]).T
    return mean - gain @ mean[known], cov - gain @ cov[known]


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("edge", [False, True])
def test_local_maximum_against_finite_differences(kernel: str, edge: bool) -> None:
    prior = GPPrior(max_dim=2, kernel=kernel)  # type: ignore[arg-type]
    task = TaskStream(prior, 77, TaskConfig(batch_size=3, num_queries=5)).batch_of(0, 2, 7)
    conditioned = conditioned_on(task, prior)
    x_star = torch.tensor([0.4, 1.0 if edge else 0.6], dtype=torch.float64)
    found = peak(conditioned, task.Xq, x_star.expand(3, 2))
    mean, cov = joint(conditioned, task.Xq[0], x_star)
    known = [6] if edge else [6, 7]
    S = cov[known][:, known]
    normal = torch.distributions.MultivariateNormal(mean[known], S)
    density = normal.log_prob(torch.zeros(len(known)))  # type: ignore[no-untyped-call]
    mean, cov = given_zero(mean, cov, known)
    rough = 0.15 if kernel == "matern52" else 2e-3  # its fourth derivative has a kink at zero

    def close(ours: Tensor, expected: Tensor, tolerance: float = 2e-2) -> bool:
        return torch.allclose(
            ours, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())
        )

    assert close(found.mean[0, 0], mean[:5])
    assert close(found.variance[0, 0], cov.diagonal()[:5])
    assert close(found.covariance[0, 0], cov[:5, 5])
    assert close(found.star_mean[0, 0], mean[5:6])
    assert close(found.star_variance[0, 0], cov[5:6, 5])
    assert close(found.curvature[0, 0], mean[8:], rough)
    assert close(found.curvature_variance[0, 0], cov.diagonal()[8:], rough)
    assert close(found.curvature_covariance[0, 0], cov[8:, 5], rough)
    # A coordinate on a face adds the density of a standard normal at zero: the same for all.
    constant = -0.5 * math.log(2 * math.pi) if edge else 0.0
    assert float(found.log_flat[0, 0]) == pytest.approx(float(density) + constant, abs=0.01)


def test_density_integrates_to_the_number_of_local_maxima() -> None:
    task = TaskStream(PRIORS["robust"], 3, TaskConfig(batch_size=1, num_queries=1)).batch_of(
        0, 1, 4
    )
    conditioned = conditioned_on(task)
    grid = torch.linspace(0.05, 0.95, 181, dtype=torch.float64)[:, None]
    f = draw(conditioned, grid, 40_000)
    inner = f[:, 1:-1]
    count = ((inner > f[:, :-2]) & (inner > f[:, 2:])).double().sum(1)
    places = grid[:, None]
    particles = conditioned.particles
    many = condition(
        PRIORS["robust"],
        type(particles)(particles.hyper[[0] * 181], particles.log_weights.expand(181, -1)),
        task.X.expand(181, -1, -1),
        task.y.expand(181, -1),
    )
    density = peak(many, places, grid).log_density()[:, 0].exp()
    error = 5 * float(count.std()) / len(count) ** 0.5
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(
        float(count.mean()), abs=error + 0.02
    )


def test_value_against_regression(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([[0.4, 0.6]] * 3, dtype=torch.float64)
    found = peak(conditioned, task.Xq, x_star)
    before = (found.mean, found.variance, found.covariance, found.star_mean, found.star_variance)
    mean, variance, covariance, star_mean, star_variance = before
    f = task.optimum.f
    log_density = found.observe_value(f)
    surprise = f[:, None, None] - star_mean
    assert torch.allclose(found.mean, mean + covariance / star_variance * surprise)
    assert torch.allclose(found.variance, variance - covariance.square() / star_variance, atol=1e-8)
    normal = torch.distributions.Normal(star_mean, star_variance.sqrt())
    expected = normal.log_prob(f[:, None, None])  # type: ignore[no-untyped-call]
    assert torch.allclose(log_density, expected.squeeze(-1))
    assert (found.star_variance == 0).all()


@pytest.mark.parametrize("value_known", [False, True])
def test_nothing_is_higher_against_rejection(task: TaskBatch, value_known: bool) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([0.4, 0.6], dtype=torch.float64)
    landmarks = torch.tensor([[0.9, 0.2], [0.1, 0.1], [0.3, 0.9]], dtype=torch.float64)
    queries = torch.tensor([[0.8, 0.9], [0.2, 0.4], [0.0, 0.3]], dtype=torch.float64)
    points = torch.cat([queries, landmarks])
    found = peak(conditioned, points.expand(3, 6, 2), x_star.expand(3, 2))
    mean, cov = given_zero(*joint(conditioned, points, x_star), [7, 8])
    value = found.star_mean[:, 0, 0] + 0.5 * found.star_variance[:, 0, 0].sqrt()
    if value_known:
        found.observe_value(value)
        mean[6] -= value[0]
        mean, cov = given_zero(mean, cov, [6])
        mean[6] += value[0]
    root = torch.linalg.cholesky(cov[:7, :7] + 1e-9 * torch.eye(7, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    draws = mean[:7] + torch.randn(400_000, 7, generator=rng, dtype=torch.float64) @ root.T
    f, star = draws[:, :6], draws[:, 6:]
    log_probability = found.observe_highest(3, 3)
    kept = (f[:, 3:] <= star).all(1)
    # Moment matching is an approximation, hence the tolerances.
    share = float(kept.double().mean())
    assert 0.02 < share < 0.9
    assert float(log_probability[0, 0].exp()) == pytest.approx(share, rel=0.1)
    sd = f.std(0)[:3]
    assert ((found.mean[0, 0, :3] - f[kept, :3].mean(0)).abs() < 0.1 * sd).all()
    assert ((found.variance[0, 0, :3].sqrt() / f[kept, :3].std(0)).log().abs() < 0.1).all()
    below_mean, below_variance, gap = found.below(3)
    open_to_doubt = gap[0, 0].abs().argsort()[:2].tolist()  # the third is far above or below x*
    for i in open_to_doubt:
        below = f[kept & (f[:, i] <= star[:, 0]), i]
        assert len(below) > 1000
        assert float(below_mean[0, 0, i]) == pytest.approx(
            float(below.mean()), abs=0.1 * float(sd[i])
        )
        assert float(below_variance[0, 0, i].sqrt()) == pytest.approx(float(below.std()), rel=0.3)


def test_a_candidate_at_the_optimum_itself_is_not_higher(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([[0.4, 1.0]] * 3, dtype=torch.float64)
    found = peak(conditioned, torch.cat([task.Xq, x_star[:, None].expand(-1, 4, -1)], 1), x_star)
    mean = found.mean.clone()
    assert (found.observe_highest(4, 4) > -1e-3).all()
    assert torch.allclose(found.mean, mean, atol=1e-3)
