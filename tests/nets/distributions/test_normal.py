"""Tails of the normal against SciPy, and against integrals that need no special function."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor

from amortes.nets.distributions.normal import (
    cut_off,
    log_h,
    log_ndtr,
    log_normal,
    log_sum_exp,
    ndtr,
    truncated_moments,
)

DTYPES = [torch.float32, torch.float64]
POINTS = torch.tensor(
    [*np.linspace(-12.0, 8.0, 161), -15.0, -20.0, -37.5, -100.0, -1e3, -1e5, -4e7, 30.0, 1e3],
    dtype=torch.float64,
)
LEGENDRE = np.polynomial.legendre.leggauss(200)


def tail_integral(x: float, power: int) -> float:
    """∫_0^∞ s^power exp(-s²/2 - x s) ds, by Gauss-Legendre up to where nothing is left."""
    t, w = LEGENDRE
    end = 40.0 / (x + 1.0) if x > 0 else 12.0 - x
    s = 0.5 * end * (t + 1.0)
    return float(0.5 * end * np.sum(w * s**power * np.exp(-0.5 * s**2 - x * s)))


def exact_hazard(u: float) -> float:
    # With s the distance below u: Φ(u) / φ(u) = ∫ exp(-s²/2 + u s) ds.
    return 1.0 / tail_integral(-u, 0)


def exact_log_h(u: float) -> float:
    # φ(u) + u Φ(u) = ∫_{-∞}^u Φ = φ(u) ∫ s exp(-s²/2 + u s) ds.
    return stats.norm.logpdf(u) + math.log(tail_integral(-u, 1))


def exact_truncated(u: float) -> tuple[float, float]:
    """Mean distance below u, and variance, of a standard normal given that it is below u."""
    zeroth, first, second = (tail_integral(-u, power) for power in range(3))
    distance = first / zeroth
    return distance, second / zeroth - distance**2


def check(actual: Tensor, expected: list[float], dtype: torch.dtype, rtol: float) -> None:
    assert actual.dtype == dtype
    target = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.double(), target, rtol=rtol, atol=1e-30)


@pytest.mark.parametrize("dtype", DTYPES)
def test_distribution_function_and_its_log(dtype: torch.dtype) -> None:
    z = torch.linspace(-12.0, 8.0, 161, dtype=dtype)
    exact = special.ndtr(z.double().numpy())
    rtol = 2e-5 if dtype == torch.float32 else 1e-13
    check(ndtr(z), exact.tolist(), dtype, rtol)
    check(log_ndtr(z), special.log_ndtr(z.double().numpy()).tolist(), dtype, rtol)
    check(log_normal(z), stats.norm.logpdf(z.double().numpy()).tolist(), dtype, rtol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hazard(dtype: torch.dtype) -> None:
    u = POINTS[POINTS < 8.5].to(dtype)
    rtol = 5e-6 if dtype == torch.float32 else 1e-11
    check(cut_off(u)[0], [exact_hazard(x) for x in u.double().tolist()], dtype, rtol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_h(dtype: torch.dtype) -> None:
    u = POINTS[POINTS < 8.5].to(dtype)
    rtol = 2e-6 if dtype == torch.float32 else 1e-11
    check(log_h(u), [exact_log_h(x) for x in u.double().tolist()], dtype, rtol)
    large = torch.tensor([30.0, 1e3], dtype=dtype)
    torch.testing.assert_close(log_h(large), large.log())


@pytest.mark.parametrize("dtype", DTYPES)
def test_truncated_moments(dtype: torch.dtype) -> None:
    u = POINTS[(POINTS < 8.5) & (POINTS > -1e6)].to(dtype)
    exact = [exact_truncated(x) for x in u.double().tolist()]
    zero, one = torch.zeros_like(u), torch.ones_like(u)
    mean, variance = truncated_moments(zero, one, u)
    assert (variance > 0).all()
    rtol = 2e-4 if dtype == torch.float32 else 1e-10
    check(variance, [v for _, v in exact], dtype, rtol)
    # The mean as a distance below the cut: where the cut is large the digits are in the distance.
    near = u > -20
    distance = [d for (d, _), keep in zip(exact, near.tolist(), strict=True) if keep]
    torch.testing.assert_close(
        (u - mean)[near].double(), torch.tensor(distance, dtype=torch.float64), rtol=2e-5, atol=2e-6
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_truncated_moments_in_other_units(dtype: torch.dtype) -> None:
    mean, sd = torch.tensor(3.0, dtype=dtype), torch.tensor([1e-6, 0.2, 50.0], dtype=dtype)
    for u in (-30.0, -6.0, 0.0, 2.0):
        m, v = truncated_moments(mean, sd, mean + u * sd)
        cut = ((mean + u * sd) - mean) / sd  # what rounding has left of u
        expected = torch.tensor([exact_truncated(float(c))[1] for c in cut], dtype=dtype)
        torch.testing.assert_close(v / sd.square(), expected, rtol=1e-3, atol=0)
        assert (m <= mean + u * sd).all()
    m, v = truncated_moments(mean, sd, torch.tensor(math.inf, dtype=dtype))
    torch.testing.assert_close(m, mean.expand(3))
    torch.testing.assert_close(v, sd.square())


FUNCTIONS: list[Callable[[Tensor], Tensor]] = [
    log_ndtr,
    ndtr,
    lambda u: cut_off(u)[0],
    log_h,
    lambda u: truncated_moments(torch.zeros_like(u), torch.ones_like(u), u)[0],
    lambda u: truncated_moments(torch.zeros_like(u), torch.ones_like(u), u)[1],
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_match_finite_differences(function: Callable[[Tensor], Tensor]) -> None:
    u = torch.tensor([-50.0, -9.5, -8.5, -5.0, -1.0, 0.0, 2.0]).double().requires_grad_()
    assert torch.autograd.gradcheck(function, (u,), atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_finite_everywhere(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    u = POINTS.to(dtype).requires_grad_()
    value = function(u)
    (gradient,) = torch.autograd.grad(value.sum(), u)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_far_in_the_tail_are_right(dtype: torch.dtype) -> None:
    u = torch.tensor([-1e2, -1e4, -1e6], dtype=dtype, requires_grad=True)
    (hazard_slope,) = torch.autograd.grad(cut_off(u)[0].sum(), u)
    torch.testing.assert_close(hazard_slope, torch.full_like(u, -1.0), rtol=2e-4, atol=0)
    (log_h_slope,) = torch.autograd.grad(log_h(u).sum(), u)
    torch.testing.assert_close(log_h_slope, -u.detach(), rtol=5e-4, atol=0)


def test_unbounded_truncation_has_finite_gradients() -> None:
    mean, sd = torch.tensor([0.3], requires_grad=True), torch.tensor([1e-3], requires_grad=True)
    m, v = truncated_moments(mean, sd, torch.tensor(math.inf))
    by_mean, by_sd = torch.autograd.grad((m + v).sum(), (mean, sd))
    torch.testing.assert_close(by_mean, torch.ones(1))
    torch.testing.assert_close(by_sd, 2 * sd.detach())


def test_log_sum_exp_ignores_only_what_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(0)
    terms = 300 * torch.randn(50, 8, generator=generator, dtype=torch.float64)
    terms[0, 3] = -math.inf
    torch.testing.assert_close(log_sum_exp(terms), torch.logsumexp(terms, -1), rtol=0, atol=1e-14)
