import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, Moments, condition
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.numpy_kernels import Array, Scaling
from amortes.nets.kernel.optimum.given_optimum import GivenOptimum, TruncatedMoments
from amortes.nets.kernel.optimum.local_maximum import (
    LocalMaximum,
    Values,
    _derivatives,
    local_maximum,
)
from amortes.nets.kernel.optimum.representers import Representers
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
    _, stretch = Scaling(conditioned.particles.hyper).values_and_slopes(
        x_star.expand(3, 1, 2).numpy()
    )
    constant += float(np.log(stretch[0, 0, 0, : len(known)]).sum())
    assert float(found.log_flat[0, 0, 0]) == pytest.approx(float(density) + constant, abs=0.03)


def test_derivatives_by_scaled_coordinates_are_those_of_autograd(warped: TaskBatch) -> None:
    conditioned = conditioned_on(warped, PRIORS["real"])
    X, V = conditioned.V, conditioned.scale(warped.Xq)
    rough = conditioned.roughness
    assert rough is not None
    for i in np.ndindex(*X.shape[:2]):
        scale = conditioned.signal[i].numpy(), rough[i].numpy()
        found = torch.from_numpy(
            _derivatives(conditioned.prior, X[i].numpy(), V[i].numpy(), *scale)
        )
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
