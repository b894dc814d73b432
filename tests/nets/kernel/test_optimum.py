import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, Moments, condition
from amortes.nets.kernel.inference import infer_particles
from amortes.nets.kernel.numpy_kernels import Array
from amortes.nets.kernel.optimum import (
    EVIDENCE,
    ROUNDS,
    GivenOptimum,
    LocalMaximum,
    Values,
    _derivatives,
    local_maximum,
)
from amortes.nets.kernel.particles import ParticleConfig
from amortes.nets.kernel.representers import Representers
from amortes.nets.kernel.truncated import TruncatedMoments
from amortes.prior.gp import PRIORS, GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from tests.nets.kernel import reference

STEP = 5e-3


def conditioned_on(task: TaskBatch, prior: GPPrior = PRIORS["robust"]) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


def representers(conditioned: Conditioned, X: Tensor) -> Representers:
    """Points `b x m x d` of which nobody knows which is the highest, nor how high."""
    at = conditioned.moments(X)
    nothing = torch.zeros_like(at.mean)
    return Representers(
        moments=at,
        covariance=conditioned.covariance(at, at),
        share=nothing,
        max_mean=torch.full_like(nothing[..., 0], -100.0),
        max_unexplained=torch.ones_like(nothing[..., 0]),
    )


def local_at(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> LocalMaximum:
    """A local maximum at one place, x_star `b x d`, with representer points X."""
    return local_maximum(conditioned, representers(conditioned, X), x_star[:, None])


def posterior(local: LocalMaximum, values: Values, Xq: Tensor) -> tuple[Tensor, ...]:
    """Mean, variance and covariance with f(x*) at queries, `b x k x q`, without f(x) <= f(x*)."""
    known = TruncatedMoments(GivenOptimum(local, values, torch.zeros(())))
    found, _ = known.moments(Xq.numpy())
    return tuple(torch.from_numpy(moment[:, :, 0]) for moment in found[2:])


def draw(conditioned: Conditioned, points: Tensor, count: int) -> Tensor:
    """Draws of f at points `p x d` for dataset 0, particle 0: `count x p`."""
    X = points[None].expand(len(conditioned.X), -1, -1)
    at = conditioned.moments(X)
    cov = conditioned.covariance(at, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-11 * torch.eye(len(cov)))
    noise = torch.randn(len(cov), count, generator=torch.Generator().manual_seed(1), dtype=L.dtype)
    draws: Tensor = (at.mean[0, 0][:, None] + L @ noise).T
    return draws


def moments_at(conditioned: Conditioned, V: Tensor) -> Moments:
    """The posterior at scaled points, which may lie outside the cube."""
    k_x = conditioned.kernel(conditioned.V, V)
    mean = conditioned.prior.mean.loc + (conditioned.coefficients[..., None, :] @ k_x).squeeze(-2)
    whitened = conditioned.whitener @ k_x
    variance = conditioned.prior_variance[..., None] - whitened.square().sum(-2)
    return Moments(mean, variance, whitened, V)


def joint(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f(X), f(x*), its slopes and curvatures: dataset 0, particle 0.

    Derivatives, by scaled coordinates, are finite differences of the exact posterior.
    """
    p, d = X.shape
    points = torch.cat([X, x_star[None]])[None].expand(len(conditioned.X), -1, -1)
    V = conditioned.scale(points)
    size = STEP / conditioned.particles.hyper.lengthscale[0, 0]
    steps = torch.diag(size)
    V = torch.cat([V, V[:, :, -1:] + steps, V[:, :, -1:] - steps], dim=2)
    at = moments_at(conditioned, V)
    cov = conditioned.covariance(at, at)[0, 0]
    D = torch.zeros(p + 1 + 2 * d, V.shape[2], dtype=torch.float64)
    D[: p + 1, : p + 1] = torch.eye(p + 1)
    for i in range(d):
        up, down = p + 1 + i, p + 1 + d + i
        D[p + 1 + i, [up, down]] = torch.tensor([0.5, -0.5], dtype=D.dtype) / size[i]
        bend = torch.tensor([1.0, -2.0, 1.0], dtype=D.dtype) / size[i] ** 2
        D[p + 1 + d + i, [up, p, down]] = bend
    return D @ at.mean[0, 0], D @ cov @ D.T


def given_zero(mean: Tensor, cov: Tensor, known: list[int]) -> tuple[Tensor, Tensor]:
    """Mean and covariance given that the entries `known` are zero."""
    gain = torch.linalg.solve(cov[known][:, known], cov[known]).T
    return mean - gain @ mean[known], cov - gain @ cov[known]


CASES = {
    "se": GPPrior(max_dim=2),
    "matern52": GPPrior(max_dim=2, kernel="matern52"),
    "warped": GPPrior(
        max_dim=2,
        output_variance=Marginal.lognormal(0.0, 0.5),
        warp_shape=Marginal.normal(0.0, 0.35),
        warp_shift=Marginal.normal(0.0, 0.8),
    ),
    "warped and mixed": dataclasses.replace(
        PRIORS["real"].models[1][1], max_dim=2, rough_odds=Marginal.fixed(1.0)
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("edge", [False, True])
def test_local_maximum_against_finite_differences(case: str, edge: bool) -> None:
    prior = CASES[case]
    task = TaskStream(prior, 77, TaskConfig(batch_size=3, num_queries=5)).batch_of(0, 2, 7)
    conditioned = conditioned_on(task, prior)
    x_star = torch.tensor([0.4, 1.0 if edge else 0.6], dtype=torch.float64)
    found = local_at(conditioned, task.Xq, x_star.expand(3, 2))
    mean, cov = joint(conditioned, task.Xq[0], x_star)
    known = [6] if edge else [6, 7]
    S = cov[known][:, known]
    normal = torch.distributions.MultivariateNormal(mean[known], S)
    density = normal.log_prob(torch.zeros(len(known)))  # type: ignore[no-untyped-call]
    mean, cov = given_zero(mean, cov, known)
    # The fourth derivative of Matern-5/2 has a kink at zero.
    rough = 1e-2 if prior.kernel == "se" else 0.15

    def close(ours: Tensor | Array, expected: Tensor, tolerance: float = 2e-2) -> bool:
        atol = tolerance * float(expected.abs().max())
        return torch.allclose(torch.as_tensor(ours), expected, rtol=tolerance, atol=atol)

    found_mean, found_variance, found_covariance = posterior(found, found.values, task.Xq)
    assert close(found_mean[0, 0], mean[:5])
    assert close(found_variance[0, 0], cov.diagonal()[:5])
    assert close(found_covariance[0, 0], cov[:5, 5])
    assert close(found.values.mean[0, 0, :, 0], mean[5:6])
    assert close(found.values.with_star[0, 0, :, 0], cov[5:6, 5])
    assert close(found.curvature[0, 0, 0], mean[8:], rough)
    assert close(found.curvature_variance[0, 0, 0], cov.diagonal()[8:], rough)
    assert close(found.curvature_covariance[0, 0, 0], cov[8:, 5], rough)
    # A coordinate on a face adds the density of a standard normal at zero: the same for all.
    constant = -0.5 * math.log(2 * math.pi) if edge else 0.0
    # The density is one by the coordinates of the cube.
    stretch = conditioned.log_stretch(x_star.expand(3, 1, 2))[0, 0, 0]
    constant += float(stretch[: len(known)].sum())
    assert float(found.log_flat[0, 0, 0]) == pytest.approx(float(density) + constant, abs=0.03)


def test_derivatives_by_scaled_coordinates_are_those_of_autograd(warped: TaskBatch) -> None:
    conditioned = conditioned_on(warped, PRIORS["real"])
    X, V = conditioned.V, conditioned.scale(warped.Xq)
    rough = conditioned.roughness
    assert rough is not None
    for i in np.ndindex(*X.shape[:2]):
        scale = conditioned.signal[i].numpy(), rough[i].numpy()
        found = torch.from_numpy(_derivatives(conditioned.prior, X[i].numpy(), V[i].numpy(), *scale))
        at = V.clone().requires_grad_()
        for j in range(X.shape[2]):
            values = conditioned.kernel(X[:, :, j : j + 1], at)[(*i, 0)]
            (slope,) = torch.autograd.grad(values.sum(), at, create_graph=True)
            assert torch.allclose(found[:, :2, j], slope[i], atol=1e-9)
            assert torch.allclose(found[:, 2, j], values, atol=1e-9)
            for k in range(2):
                (curve,) = torch.autograd.grad(slope[..., k].sum(), at, retain_graph=True)
                assert torch.allclose(found[:, 3 + k, j], curve[i][:, k], atol=1e-7)


def test_a_worse_point_is_a_direction(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    values = local_at(conditioned, task.Xq, task.X[:, 0]).values
    point = np.full((*values.mean.shape[:3], 1), 2)
    unit = np.zeros_like(values.mean[..., 1:])
    unit[..., 2] = 1.0
    for ours, expected in zip(values.worse(point), values.direction(unit), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize("prior", [PRIORS["robust"], CASES["warped"]], ids=["plain", "warped"])
def test_density_integrates_to_the_number_of_local_maxima(prior: GPPrior) -> None:
    prior = dataclasses.replace(prior, max_dim=16)
    task = TaskStream(prior, 3, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 4)
    conditioned = conditioned_on(task, prior)
    grid = torch.linspace(0.05, 0.95, 181, dtype=torch.float64)[:, None]
    f = draw(conditioned, grid, 40_000)
    inner = f[:, 1:-1]
    count = ((inner > f[:, :-2]) & (inner > f[:, 2:])).double().sum(1)
    places = grid[:, None]
    particles = conditioned.particles
    many = condition(
        prior,
        dataclasses.replace(
            particles,
            hyper=particles.hyper[[0] * 181],
            log_weights=particles.log_weights.expand(181, -1),
        ),
        task.X.expand(181, -1, -1),
        task.y.expand(181, -1),
    )
    density = torch.from_numpy(local_at(many, places, grid).log_density()[:, 0, 0]).exp()
    error = 5 * float(count.std()) / len(count) ** 0.5
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(
        float(count.mean()), abs=error + 0.02
    )


@pytest.mark.parametrize(
    ("case", "x", "value_known"),
    [
        ("se", (0.4, 0.6), False),
        ("se", (0.3, 1.0), True),
        ("warped", (0.4, 0.6), True),
        ("warped", (0.3, 1.0), False),
    ],
)
def test_against_the_reference(case: str, x: tuple[float, float], value_known: bool) -> None:
    """All at once: zero slopes, f*, nothing is higher; moments, their gradients, and evidence."""
    task = TaskStream(CASES[case], 77, TaskConfig(batch_size=3, num_queries=5)).batch_of(0, 2, 7)
    conditioned = conditioned_on(task, CASES[case])
    x_star = torch.tensor(x, dtype=torch.float64)
    points = task.X[0, :6]
    f = task.optimum.f[0] if value_known else None
    Xq = task.Xq.clone().requires_grad_()
    local = local_at(conditioned, points.expand(3, 6, 2), x_star.expand(3, 2))
    found = GivenOptimum.of(local, None if f is None else f.expand(3, 1))
    moments = [t[0, 0, :, 0] for t in TruncatedMoments(found).posterior(Xq)[2:]]
    book = reference.Posterior(conditioned)
    *expected, evidence = reference.given_optimum(book, x_star, f, points, Xq[0], ROUNDS)
    for ours, true in zip(moments, expected, strict=True):
        assert torch.allclose(ours, true, rtol=1e-6, atol=1e-7)
        slope, true_slope = (
            torch.autograd.grad(t.sum(), Xq, retain_graph=True)[0][0] for t in (ours, true)
        )
        assert torch.allclose(slope, true_slope, rtol=1e-5, atol=1e-5)
    # A coordinate on a face adds the density of a standard normal at zero: the same for all.
    constant = -0.5 * math.log(2 * math.pi) * (1.0 in x)
    assert float(found.log_evidence[0, 0, 0]) == pytest.approx(
        EVIDENCE * (float(evidence.detach()) + constant), rel=1e-5, abs=5e-5
    )


def test_kac_rice_in_two_dimensions() -> None:
    """Local maxima of sample paths in a small square, counted; the formula with the whole Hessian;
    and ours, which takes entries of its diagonal for independent: 0.8 of the true density here.
    """
    prior = dataclasses.replace(CASES["se"], lengthscale=Marginal.fixed(0.15))
    task = TaskStream(prior, 3, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 2, 6)
    conditioned = conditioned_on(task, prior)
    line = torch.linspace(0.4, 0.6, 13, dtype=torch.float64)
    f = draw(conditioned, torch.cartesian_prod(line, line), 40_000).reshape(-1, 13, 13)
    around = torch.nn.functional.max_pool2d(f, 3, stride=1)
    count = (f[:, 1:-1, 1:-1] == around).double().sum((1, 2))
    # Gauss-Legendre nodes on the square that the inner points of the grid stand for.
    half = 0.1 - 0.5 * float(line[1] - line[0])
    node = math.sqrt(0.6) * half
    nodes = torch.tensor([0.5 - node, 0.5, 0.5 + node], dtype=torch.float64)
    weights = half * torch.tensor([5.0, 8.0, 5.0], dtype=torch.float64) / 9.0
    places, weights = torch.cartesian_prod(nodes, nodes), torch.outer(weights, weights).flatten()
    book = reference.Posterior(conditioned)
    whole = torch.stack([reference.density_of_maximum(book, x) for x in places])
    local = local_maximum(conditioned, representers(conditioned, task.Xq), places[None])
    ours = torch.from_numpy(local.log_density()[0, 0]).exp()
    error = 4.0 * float(count.std()) / len(count) ** 0.5
    assert float(weights @ whole) == pytest.approx(float(count.mean()), abs=error)
    assert float(weights @ ours) / float(count.mean()) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("value_known", [False, True])
def test_nothing_is_higher_against_rejection(task: TaskBatch, value_known: bool) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([0.4, 0.6], dtype=torch.float64)
    points = torch.tensor([[0.9, 0.2], [0.1, 0.1], [0.3, 0.9]], dtype=torch.float64)
    queries = torch.tensor([[0.8, 0.9], [0.2, 0.4], [0.0, 0.3]], dtype=torch.float64)
    found = local_at(conditioned, points.expand(3, 3, 2), x_star.expand(3, 2))
    mean, cov = given_zero(*joint(conditioned, torch.cat([queries, points]), x_star), [7, 8])
    star_mean, star_variance = found.values.mean[:, 0, :, 0], found.values.with_star[:, 0, :, 0]
    value = star_mean + 0.5 * np.sqrt(star_variance)  # b x 1
    if value_known:
        found, _ = found.with_value(value)
        mean[6] -= float(value[0, 0])
        mean, cov = given_zero(mean, cov, [6])
        mean[6] += float(value[0, 0])
    root = torch.linalg.cholesky(cov[:7, :7] + 1e-9 * torch.eye(7, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    draws = mean[:7] + torch.randn(400_000, 7, generator=rng, dtype=torch.float64) @ root.T
    f, star = draws[:, :6], draws[:, 6:]
    values, log_probability = found.highest(3)
    kept = (f[:, 3:] <= star).all(1)
    # Moment matching is an approximation, hence the tolerances.
    share = float(kept.double().mean())
    assert 0.01 < share < 0.9
    assert math.exp(log_probability[0, 0, 0]) == pytest.approx(share, rel=0.1)
    sd = f.std(0)[:3]
    found_mean, found_variance, _ = posterior(found, values, queries.expand(3, 3, 2))
    assert ((found_mean[0, 0] - f[kept, :3].mean(0)).abs() < 0.1 * sd).all()
    assert ((found_variance[0, 0].sqrt() / f[kept, :3].std(0)).log().abs() < 0.1).all()
    known = TruncatedMoments(GivenOptimum(found, values, torch.from_numpy(log_probability)))
    _, _, lower_mean, lower_variance = known.posterior(queries.expand(3, 3, 2))
    gap = (float(values.mean[0, 0, 0, 0]) - found_mean[0, 0]).abs() / found_variance[0, 0].sqrt()
    for i in gap.argsort()[:2].tolist():  # the third is far from f(x*)
        lower = f[kept & (f[:, i] <= star[:, 0]), i]
        assert len(lower) > 1000
        assert float(lower_mean[0, 0, i]) == pytest.approx(
            float(lower.mean()), abs=0.1 * float(sd[i])
        )
        assert float(lower_variance[0, 0, i].sqrt()) == pytest.approx(float(lower.std()), rel=0.3)


def test_a_point_at_the_optimum_itself_is_not_higher(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([[0.4, 1.0]] * 3, dtype=torch.float64)
    found = local_at(conditioned, x_star[:, None].expand(-1, 4, -1), x_star)
    values, log_probability = found.highest(4)
    assert (log_probability > -1e-3).all()
    before, after = (posterior(found, v, task.Xq)[0] for v in (found.values, values))
    assert torch.allclose(after, before, atol=1e-3)


def test_the_maximum_against_rejection() -> None:
    """Three dimensions, where the maximum counts: f(x*) above a maximum due to one point."""
    task = TaskStream(PRIORS["robust"], 5, TaskConfig(batch_size=3, num_queries=4)).batch_of(
        0, 3, 6
    )
    conditioned = conditioned_on(task)
    x_star = torch.tensor([0.3, 0.0, 1.0], dtype=torch.float64)
    other = torch.tensor([[0.8, 0.7, 0.2], [0.1, 0.9, 0.5]], dtype=torch.float64)
    among = representers(conditioned, other.expand(3, 2, 3))
    # The maximum is f at the first of them, plus something independent of f.
    share = torch.zeros_like(among.share)
    share[..., 0] = 1.0
    among = dataclasses.replace(
        among,
        share=share,
        max_mean=among.moments.mean[..., 0] - 1.0,
        max_unexplained=torch.full_like(among.max_mean, 0.04),
    )
    found = local_maximum(conditioned, among, x_star.expand(3, 1, 3))
    points = torch.cat([task.Xq[0], other[:1]])
    mean, cov = given_zero(*joint(conditioned, points, x_star), [6])
    root = torch.linalg.cholesky(cov[:6, :6] + 1e-9 * torch.eye(6, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(400_000, 7, generator=rng, dtype=torch.float64)
    draws = mean[:6] + noise[:, :6] @ root.T
    kept = draws[:, 5] >= draws[:, 4] - 1.0 + 0.2 * noise[:, 6]
    share_kept = float(kept.double().mean())
    assert 0.02 < share_kept < 0.98
    values, log_probability = found.highest(0)
    assert math.exp(log_probability[0, 0, 0]) == pytest.approx(share_kept, abs=0.01)
    found_mean, found_variance, _ = posterior(found, values, task.Xq)
    expected = draws[kept, :4]
    assert torch.allclose(found_mean[0, 0], expected.mean(0), atol=0.02)
    assert torch.allclose(found_variance[0, 0].sqrt(), expected.std(0), rtol=0.03)


def test_places_are_independent_of_each_other(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    places = torch.tensor([[0.4, 0.6], [0.9, 1.0], [0.1, 0.3]], dtype=torch.float64)
    among = representers(conditioned, task.X)
    together = local_maximum(conditioned, among, places.expand(3, 3, 2))
    values, log_probability = together.highest(2)
    for i in range(3):
        alone = local_maximum(conditioned, among, places[None, i : i + 1].expand(3, 1, 2))
        own, own_probability = alone.highest(2)
        assert np.allclose(own_probability[..., 0], log_probability[..., i])
        assert np.allclose(own.combinations[:, :, 0], values.combinations[:, :, i])
