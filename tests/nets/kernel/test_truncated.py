import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.numpy_kernels import differentiable
from amortes.nets.kernel.optimum import GivenOptimum, local_maximum
from amortes.nets.kernel.truncated import TruncatedMoments, truncate
from amortes.prior.gp import PRIORS
from amortes.prior.kernels import radial_slope, square_distance
from amortes.prior.tasks import TaskBatch
from tests.nets.kernel.test_optimum import conditioned_on, representers

FLOOR = torch.tensor(1e-9, dtype=torch.float64)
CASES = {
    "se": PRIORS["robust"],
    "matern52": dataclasses.replace(PRIORS["robust"], kernel="matern52"),
    "warped": PRIORS["real"].models[1][1],
    "mixture": PRIORS["real"],
}


def given_optima(task: TaskBatch, case: str) -> tuple[GivenOptimum, TruncatedMoments]:
    """Maxima at three places of each dataset, above four points."""
    conditioned = conditioned_on(task, CASES[case])
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
        torch.from_numpy(t)
        for t in (values.rows, values.pull, values.combinations, local.white)
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


@pytest.mark.parametrize("case", CASES)
def test_moments_and_gradients_are_those_by_rows(task: TaskBatch, case: str) -> None:
    given, known = given_optima(task, case)
    X = torch.cat([task.Xq, task.X[:, :3]], dim=1).requires_grad_()
    rng = torch.Generator().manual_seed(0)
    for actual, true in zip(
        differentiable(known.moments, X), by_rows(X, given), strict=True
    ):
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
    (m, v), _ = truncate(*(np.array([t]) for t in parts), FLOOR.numpy())
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
