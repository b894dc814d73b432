import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.numpy_kernels import differentiable
from amortes.nets.kernel.optimum.given_optimum import (
    EVIDENCE,
    ROUNDS,
    GivenOptimum,
    TruncatedMoments,
    highest,
    truncate,
)
from amortes.nets.kernel.optimum.local_maximum import local_maximum
from amortes.prior.gp import PRIORS
from amortes.prior.kernels import radial_slope, square_distance
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from tests.nets.kernel import reference
from tests.nets.kernel.optimum.test_local_maximum import (
    CASES,
    conditioned_on,
    given_zero,
    joint,
    local_at,
    posterior,
    representers,
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
    values, log_probability = highest(found, 3)
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
    values, log_probability = highest(found, 4)
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
    values, log_probability = highest(found, 0)
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
    values, log_probability = highest(together, 2)
    for i in range(3):
        alone = local_maximum(conditioned, among, places[None, i : i + 1].expand(3, 1, 2))
        own, own_probability = highest(alone, 2)
        assert np.allclose(own_probability[..., 0], log_probability[..., i])
        assert np.allclose(own.combinations[:, :, 0], values.combinations[:, :, i])


FLOOR = torch.tensor(1e-9, dtype=torch.float64)


KERNELS = {
    "se": PRIORS["robust"],
    "matern52": dataclasses.replace(PRIORS["robust"], kernel="matern52"),
    "warped": PRIORS["real"].models[1][1],
    "mixture": PRIORS["real"],
}


def given_optima(task: TaskBatch, case: str) -> tuple[GivenOptimum, TruncatedMoments]:
    """Maxima at three places of each dataset, above four points."""
    conditioned = conditioned_on(task, KERNELS[case])
    x = torch.cat([task.optimum.x[:, None], task.Xq[:, 4:6]], dim=1)
    local = local_maximum(conditioned, representers(conditioned, task.Xq[:, :4]), x)
    given = GivenOptimum.of(local, task.optimum.f[:, None].expand(-1, 3))
    return given, TruncatedMoments(given)


def slope_kernel(conditioned: Conditioned, V1: Tensor, V2: Tensor) -> Tensor:
    """Prior covariances of f at V1 with slopes at V2: `b x k x q x s x d`."""
    r2 = square_distance(V1, V2)
    slope = radial_slope(conditioned.prior.kernel, r2, conditioned.roughness)
    return (conditioned.signal * slope)[..., None] * (V1[..., :, None, :] - V2[..., None, :, :])


def by_rows(X: Tensor, given: GivenOptimum) -> tuple[Tensor, ...]:
    """The same from covariances with slopes and f at x* and with f at the points, as defined."""
    local, values = given.local, given.values
    conditioned, points = local.conditioned, local.representers.moments
    rows, pull, combinations, white = (
        torch.from_numpy(t) for t in (values.rows, values.pull, values.combinations, local.white)
    )
    at, V = conditioned.moments(X), torch.from_numpy(local.V)
    slopes = slope_kernel(conditioned, at.V, V)  # b x k x q x s x d
    prior = torch.cat([slopes, conditioned.kernel(at.V, V)[..., None]], dim=-1)
    explained = at.whitened.mT[:, :, None] @ white.mT  # b x k x s x q x (d + 1)
    raw = prior.transpose(2, 3) - explained
    cross = conditioned.covariance(at, points)[:, :, None].expand(-1, -1, raw.shape[2], -1, -1)
    found = torch.cat([raw, cross], dim=-1) @ combinations.mT
    mean = at.mean[:, :, None] + (found @ pull[..., None]).squeeze(-1)
    variance = at.variance[:, :, None] - found.square().sum(-1)
    with_star = raw[..., -1] - (found @ rows[..., 0, None]).squeeze(-1)
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None, None]
    after = mean, variance.clamp_min(floor), with_star
    return at.mean, at.variance, *after


@pytest.mark.parametrize("case", KERNELS)
def test_moments_and_gradients_are_those_by_rows(task: TaskBatch, case: str) -> None:
    given, known = given_optima(task, case)
    X = torch.cat([task.Xq, task.X[:, :3]], dim=1).requires_grad_()
    rng = torch.Generator().manual_seed(0)
    for actual, true in zip(differentiable(known.moments, X), by_rows(X, given), strict=True):
        assert actual.shape == true.shape
        assert torch.allclose(actual, true, rtol=1e-8, atol=1e-8)
        weights = torch.randn(true.shape, generator=rng, dtype=true.dtype)
        slope, true_slope = (
            torch.autograd.grad(moment, X, weights, retain_graph=True)[0]
            for moment in (actual, true)
        )
        assert torch.allclose(slope, true_slope, rtol=1e-6, atol=1e-6)


def one(
    mean: float, variance: float, with_star: float, star_mean: float, star_variance: float
) -> tuple[float, float]:
    """Truncated moments of one value."""
    parts = (mean, variance, with_star, star_mean, star_variance)
    a, b, c, d, e = (np.array([t]) for t in parts)
    (m, v), _ = truncate(a, b, c, d, e, FLOOR.numpy())
    return float(m[0]), float(v[0])


@pytest.mark.parametrize(
    ("mean", "variance", "star_mean", "star_variance", "correlation"),
    [(0.0, 1.0, 0.0, 1.0, 0.3), (1.0, 0.5, 0.2, 2.0, -0.6), (0.5, 2.0, 1.5, 0.3, 0.8)],
)
def test_truncation_against_integration(
    mean: float, variance: float, star_mean: float, star_variance: float, correlation: float
) -> None:
    with_star = correlation * math.sqrt(variance * star_variance)
    m, v = one(mean, variance, with_star, star_mean, star_variance)
    cov = torch.tensor([[variance, with_star], [with_star, star_variance]], dtype=torch.float64)
    centre = torch.tensor([mean, star_mean], dtype=torch.float64)
    grid = torch.linspace(-12.0, 12.0, 2401, dtype=torch.float64)
    f, star = torch.meshgrid(grid, grid, indexing="ij")
    away = torch.stack([f, star], -1) - centre
    weight = (-0.5 * ((away @ torch.linalg.inv(cov)) * away).sum(-1)).exp()
    weight = weight * ((f < star).double() + 0.5 * (f == star))
    weight = weight / weight.sum()
    expected = (weight * f).sum()
    assert m == pytest.approx(float(expected), abs=1e-4)
    assert v == pytest.approx(float((weight * (f - expected).square()).sum()), abs=1e-4)


def test_what_was_clear_before_changes_nothing() -> None:
    m, v = one(0.5, 2.0, 0.3, 50.0, 1.0)
    assert (m, v) == pytest.approx((0.5, 2.0), rel=1e-12)


def test_certain_points_stay_finite() -> None:
    # x is x* itself: its gap has no variance; and a known value that is far too high.
    assert one(1.0, 0.7, 0.7, 1.0, 0.7) == pytest.approx((1.0, 0.7), abs=1e-3)
    m, v = one(40.0, 1.0, 0.0, 0.0, 1e-9)
    assert math.isfinite(m)
    assert m < 0.1
    assert 0 < v < 0.01


def by_graph(
    m: Tensor, v: Tensor, c: Tensor, star_mean: Tensor, star_variance: Tensor
) -> tuple[Tensor, Tensor]:
    """The formulas of the module, differentiated by autograd."""
    gap = (v + star_variance - 2.0 * c).clamp_min(FLOOR).sqrt()
    z = (star_mean - m) / gap
    hazard, distance, _ = cut_off(z)
    slope = (c - v) / gap
    variance = v - slope.square() * hazard * distance
    return m + slope * hazard, variance.clamp_min(FLOOR)


@pytest.mark.parametrize("shift", [0.0, 3.0, -20.0, 40.0])
def test_values_and_gradients_are_those_of_the_formulas(shift: float) -> None:
    rng = torch.Generator().manual_seed(4)
    a, b = torch.randn(2, 5, 7, 3, generator=rng, dtype=torch.float64)
    v = (a.square() + 0.1).requires_grad_()
    c = (0.5 * a * b).requires_grad_()
    m = torch.randn(5, 7, 3, generator=rng, dtype=torch.float64).requires_grad_()
    star_mean = shift + torch.randn(5, 1, 3, generator=rng, dtype=torch.float64)
    star_variance = b.square().amax(1, keepdim=True) + 0.1
    known = (t.detach().numpy() for t in (m, v, c, star_mean, star_variance, FLOOR))
    found, pull_back = truncate(*known)
    expected = by_graph(m, v, c, star_mean, star_variance)
    weights = torch.randn(2, 5, 7, 3, generator=rng, dtype=torch.float64)
    slopes = torch.autograd.grad([*expected], [m, v, c], [*weights])
    ours = (*found, *pull_back(*weights.numpy()))
    for actual, true in zip(ours, (*expected, *slopes), strict=True):
        assert torch.allclose(torch.from_numpy(actual), true, rtol=1e-9, atol=1e-10)


def test_floors_have_no_slope() -> None:
    # x is x* itself: the gap has no variance, whatever m, v and c are.
    m, v, c, star_mean, star_variance = (np.array([t]) for t in (0.3, 0.7, 0.7, 0.3, 0.7))
    _, pull_back = truncate(m, v, c, star_mean, star_variance, FLOOR.numpy())
    for slope in pull_back(np.zeros(1), np.ones(1)):
        assert np.isfinite(slope).all()
