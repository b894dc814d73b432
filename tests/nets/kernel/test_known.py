import math

import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.known import Known, Places
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.nets.kernel.peak import peak_at
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch
from tests.nets.kernel.test_peak import rivals


@pytest.fixture(params=["robust", "real"])
def conditioned(task: TaskBatch, request: pytest.FixtureRequest) -> Conditioned:
    """Four particles."""
    prior = PRIORS[request.param]
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


def places_at(conditioned: Conditioned, x: Tensor) -> Places:
    at = conditioned.moments(x)
    slopes = conditioned.slope_kernel(conditioned.V, at.V)  # b x k x n x s x d
    white = (conditioned.whitener @ slopes.flatten(3)).reshape(slopes.shape)
    white = torch.cat([white, at.whitened[..., None]], dim=-1)
    return Places(conditioned, x, at, white, white.transpose(2, 3))


def nothing_known(star_mean: float, star_variance: float) -> Known:
    """Of one dataset, particle and place: no rows yet."""
    shape = (1, 1, 1)
    return Known(
        mix=torch.zeros(*shape, 0, 3, dtype=torch.float64),
        pull=torch.zeros(*shape, 0, dtype=torch.float64),
        star_rows=torch.zeros(*shape, 0, dtype=torch.float64),
        star_mean=torch.full(shape, star_mean, dtype=torch.float64),
        star_variance=torch.full(shape, star_variance, dtype=torch.float64),
        share=torch.zeros(1, 1, 4, dtype=torch.float64),
        floor=torch.full((1, 1, 1, 1), 1e-9, dtype=torch.float64),
        met=torch.zeros(*shape, 0, dtype=torch.long),
    )


def below(known: Known, mean: float, variance: float, with_star: float) -> tuple[float, float]:
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    rows = torch.zeros(1, 1, 1, 1, 0, dtype=torch.float64)
    m, v, _ = known.below(mean * one, variance * one, rows, with_star * one[..., None])
    return float(m), float(v)


def test_covariances_with_slopes_are_derivatives(conditioned: Conditioned, task: TaskBatch) -> None:
    x = task.optimum.x[:, None].clone()
    found = places_at(conditioned, x).covariance(conditioned.moments(task.Xq))
    assert found.shape == (3, 4, 1, 9, 3)
    # Slopes are those by scaled coordinates.
    per_unit = (-conditioned.log_stretch(x)).exp()[:, :, 0, None]  # b x k x 1 x d

    def covariance(place: Tensor) -> Tensor:  # b x k x q
        at, at_q = conditioned.moments(place), conditioned.moments(task.Xq)
        return conditioned.covariance(at_q, at)[..., 0]

    assert torch.allclose(found[:, :, 0, :, -1], covariance(x))
    h = 1e-5
    for k in range(2):
        shift = torch.zeros_like(x)
        shift[..., k] = h
        slope = (covariance(x + shift) - covariance(x - shift)) / (2 * h) * per_unit[..., k]
        assert torch.allclose(found[:, :, 0, :, k], slope, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("mean", "variance", "star_mean", "star_variance", "correlation"),
    [(0.0, 1.0, 0.0, 1.0, 0.3), (1.0, 0.5, 0.2, 2.0, -0.6), (0.5, 2.0, 1.5, 0.3, 0.8)],
)
def test_truncation_against_integration(
    mean: float, variance: float, star_mean: float, star_variance: float, correlation: float
) -> None:
    with_star = correlation * math.sqrt(variance * star_variance)
    m, v = below(nothing_known(star_mean, star_variance), mean, variance, with_star)
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
    m, v = below(nothing_known(star_mean=50.0, star_variance=1.0), 0.5, 2.0, 0.3)
    assert (m, v) == pytest.approx((0.5, 2.0), rel=1e-12)


def test_certain_points_stay_finite() -> None:
    # x is x* itself: its gap has no variance; and a known value that is far too high.
    assert below(nothing_known(1.0, 0.7), 1.0, 0.7, 0.7) == pytest.approx((1.0, 0.7), abs=1e-3)
    m, v = below(nothing_known(0.0, 1e-9), 40.0, 1.0, 0.0)
    assert math.isfinite(m)
    assert m < 0.1
    assert 0 < v < 0.01


def test_gradients_against_differences(conditioned: Conditioned, task: TaskBatch) -> None:
    at = rivals(conditioned, task.Xq[:, :4])
    peak = peak_at(conditioned, at, task.optimum.x[:, None])
    peak.observe_highest(2)
    known = peak.known()

    def value(X: Tensor) -> Tensor:
        moments = conditioned.moments(X)
        raw = peak.places.covariance(moments)
        rows = known.rows(raw, conditioned.covariance(moments, at.moments))
        m, v, _ = known.below(moments.mean, moments.variance, rows, raw[..., -1])
        return (m + v.log()).sum()

    Xq = task.Xq[:, 4:].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(Xq), Xq)
    h = 1e-5
    for i, j, k in ((0, 0, 0), (1, 2, 1), (2, 4, 0)):
        shift = torch.zeros_like(Xq)
        shift[i, j, k] = h
        slope = float((value(Xq + shift) - value(Xq - shift)).detach()) / (2 * h)
        assert float(gradient[i, j, k]) == pytest.approx(slope, rel=1e-5, abs=1e-6)
