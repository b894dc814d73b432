import functools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.nets.distributions import GaussianMixture, PowerTransformed, Predictive
from amortes.nets.distributions.power import (
    inverse_power_transform,
    log_power_slope,
    power_transform,
)
from tests.nets.distributions.conformance import BATCH, PredictiveConformance, integrate

POWERS = [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
T = torch.linspace(-6.0, 6.0, 101, dtype=torch.float64)


def mixture(*batch: int, spread: float = 0.3) -> GaussianMixture:
    rng = torch.Generator().manual_seed(2)
    draws = torch.randn(3, *batch, 4, generator=rng, dtype=torch.float64)
    return GaussianMixture(draws[0], spread * draws[1], spread * (0.4 * draws[2]).exp())


def transformed(
    power: float, *batch: int, scale: float = 2.0, low: float = -1e3, high: float = 1e3
) -> PowerTransformed:
    return PowerTransformed(mixture(*batch), power, low=low, high=high, scale=scale, shift=-1.5)


@pytest.mark.parametrize("power", POWERS)
def test_the_transform_is_scipys(power: float) -> None:
    expected = stats.yeojohnson(T.numpy(), power)
    assert np.allclose(power_transform(T, power), expected, rtol=1e-10, atol=1e-12)
    t = T.clone().requires_grad_()
    (slope,) = torch.autograd.grad(power_transform(t, power).sum(), t)
    assert torch.allclose(log_power_slope(T, power), slope.log(), atol=1e-10)


@pytest.mark.parametrize("power", POWERS)
def test_the_inverse_inverts(power: float) -> None:
    assert torch.allclose(inverse_power_transform(power_transform(T, power), power), T, rtol=1e-8)
    # Beyond the bound of T, if it has one: far out, finite, on the right side.
    far = inverse_power_transform(torch.tensor([-50.0, 50.0], dtype=torch.float64), power)
    assert far.isfinite().all()
    assert far[0] < -4.0
    assert far[1] > 4.0
    huge = inverse_power_transform(torch.tensor([-1e30, 1e30], dtype=torch.float64), power)
    assert huge.isfinite().all()


def test_power_one_is_the_identity() -> None:
    assert torch.allclose(power_transform(T, 1.0), T)
    assert torch.equal(log_power_slope(T, 1.0), torch.zeros_like(T))
    one, base = transformed(1.0, 3), mixture(3).affine(*torch.tensor([2.0, -1.5]).double())
    y = torch.linspace(-4.0, 2.0, 3, dtype=torch.float64)
    assert torch.allclose(one.log_prob(y), base.log_prob(y))
    assert torch.allclose(one.mean, base.mean)
    assert torch.allclose(one.variance, base.variance)


class TestPowerTransformed(PredictiveConformance):
    """Smooth enough for quadrature; its own tests are below."""

    entropy_error = 1e-3
    cross_entropy_error = 1e-2

    def make(self, dtype: torch.dtype) -> Predictive:
        rng = torch.Generator().manual_seed(2)
        draws = torch.randn(3, *BATCH, 5, generator=rng, dtype=torch.float64)
        leaves = (draws[0], 0.4 * draws[1], 0.3 * (0.3 * draws[2]).exp())
        self.leaves = [leaf.to(dtype).requires_grad_() for leaf in leaves]
        return PowerTransformed(
            GaussianMixture(*self.leaves), 0.5, low=-1e4, high=1e4, scale=1.5, shift=0.2
        )

    def parameters(self, predictive: Predictive) -> list[Tensor]:
        return self.leaves

    def edges(self) -> Tensor:
        # T has a kink in its second derivative at zero: a panel ends at the shift.
        inner = torch.linspace(-10.0, 10.4, 3001, dtype=torch.float64)
        return torch.cat([inner, torch.tensor([0.2], dtype=torch.float64)]).sort().values

    def check(
        self, actual: Tensor, expected: Tensor, dtype: torch.dtype, extra: float = 0.0
    ) -> None:
        # The mean and all that follows from it come from Gauss-Hermite quadrature.
        assert actual.dtype == dtype
        torch.testing.assert_close(
            actual.double(), expected.expand_as(actual), rtol=3e-3, atol=3e-3 + extra
        )

    @pytest.mark.parametrize("y", [-0.6, -0.1, 0.37, 0.8])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_distribution_function_and_improvements(self, dtype: torch.dtype, y: float) -> None:
        predictive, at = self.make(dtype), torch.tensor(y, dtype=dtype)
        below = self.expect(lambda v: (v <= y).double(), y)
        gain = self.expect(lambda v: (v - y).clamp_min(0.0), y)
        self.check(predictive.cdf(at), below, dtype)
        self.check(predictive.probability_of_improvement(at), 1.0 - below, dtype)
        # A kink between nodes costs quadrature most.
        self.check(predictive.expected_improvement(at), gain, dtype, 0.01)

    def test_quantile_extremes(self) -> None:
        p = torch.tensor([0.0, 1.0], dtype=torch.float64)[:, None, None]
        ends = self.make(torch.float64).icdf(p)
        assert torch.allclose(ends[0], torch.tensor(0.2 - 1.5e4).double())
        assert torch.allclose(ends[1], torch.tensor(0.2 + 1.5e4).double())

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("dtype", [torch.float64])
    def test_affine(self, dtype: torch.dtype, sign: float) -> None:
        base = self.make(dtype)
        scale, shift = torch.tensor(sign * 3.0, dtype=dtype), torch.tensor(-2.0, dtype=dtype)
        other = base.affine(scale, shift)
        y = self.points(dtype)
        moved = scale * y + shift
        exact = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
        exact(other.log_prob(moved), base.log_prob(y) - math.log(3.0))
        exact(other.mean, scale * base.mean + shift)
        exact(other.variance, 9.0 * base.variance)
        exact(other.entropy(), base.entropy() + math.log(3.0))
        below = base.cdf(y) if sign > 0 else base.probability_of_improvement(y)
        exact(other.cdf(moved), below)
        exact(other.probability_of_improvement(moved), 1.0 - below)
        levels = torch.tensor([0.1, 0.6], dtype=dtype)[:, None, None]
        quantile = base.icdf(levels if sign > 0 else 1.0 - levels)
        exact(other.icdf(levels), scale * quantile + shift)


@pytest.mark.parametrize("scale", [2.0, -2.0])
@pytest.mark.parametrize("power", POWERS)
def test_change_of_variables(power: float, scale: float) -> None:
    """The density integrates to the probabilities of the Gaussians behind it."""
    q = transformed(power, 3, 2, scale=scale)
    edges = torch.linspace(-5.0, 2.0, 2001, dtype=torch.float64)
    with torch.no_grad():
        inside = integrate(lambda y: q.log_prob(y[:, None, None]).exp(), edges)
    ends = q.cdf(edges[-1]) - q.cdf(edges[0])
    torch.testing.assert_close(inside, ends, rtol=1e-6, atol=1e-6)
    # P(Y <= y) is that of V on the right side of T((y - shift) / scale).
    y = torch.tensor(-1.2, dtype=torch.float64)
    v = torch.as_tensor(stats.yeojohnson(np.array([float((y + 1.5) / scale)]), power))[0]
    below = q.base.cdf(v) if scale > 0 else 1.0 - q.base.cdf(v)
    torch.testing.assert_close(q.cdf(y), below)
    torch.testing.assert_close(q.probability_of_improvement(y), 1.0 - below)


@pytest.mark.parametrize("scale", [2.0, -2.0])
@pytest.mark.parametrize("power", [-1.0, 0.0, 2.5])
def test_moments_quantiles_and_entropy_against_draws(power: float, scale: float) -> None:
    q = transformed(power, 3, scale=scale, low=-4.0, high=4.0)
    draws = q.sample(torch.Generator().manual_seed(0), (200_000,))
    sd = draws.std(0)
    assert ((q.mean - draws.mean(0)).abs() < 0.02 * sd).all()
    assert torch.allclose(q.variance.sqrt(), sd, rtol=0.05)
    levels = torch.tensor([0.05, 0.3, 0.5, 0.9], dtype=torch.float64)
    found = q.icdf(levels[:, None])
    shares = torch.stack([(draws <= each).double().mean(0) for each in found])
    assert torch.allclose(shares, levels[:, None].expand_as(shares), atol=0.01)
    assert torch.allclose(q.entropy(), -q.log_prob(draws).mean(0), atol=0.05)
    best = q.icdf(torch.tensor(0.6, dtype=torch.float64))
    gain = (draws - best).clamp_min(0.0).mean(0)
    assert torch.allclose(q.log_expected_improvement(best).exp(), gain, rtol=0.1)


def test_nothing_is_claimed_beyond_the_bounds() -> None:
    # With λ = -1 a fifth of the Gaussian is beyond what T can reach.
    base = GaussianMixture(*(torch.tensor([[t]]).double() for t in (0.0, 0.5, 0.6)))
    q = PowerTransformed(base, -1.0, low=-3.0, high=7.0, scale=10.0, shift=100.0)
    draws = q.sample(torch.Generator().manual_seed(0), (10_000,))
    assert float(draws.max()) == 170.0
    assert float(draws.min()) >= 70.0
    assert float(q.icdf(torch.tensor(0.999, dtype=torch.float64))) == 170.0
    assert 70.0 < float(q.mean) < 170.0
    assert float(q.cdf(torch.tensor(170.0, dtype=torch.float64))) == 1.0
    assert float(q.cdf(torch.tensor(69.9, dtype=torch.float64))) == 0.0
    beyond = torch.tensor(171.0, dtype=torch.float64)
    assert float(q.probability_of_improvement(beyond)) == 0.0
    assert float(q.expected_improvement(beyond)) < 1e-290


def test_indices_and_gradients() -> None:
    means = torch.zeros(3, 2, 4, dtype=torch.float64, requires_grad=True)
    base = GaussianMixture(torch.zeros_like(means), means, torch.ones_like(means))
    q = PowerTransformed(base, 0.0, low=-50.0, high=50.0, scale=1.0, shift=0.0)
    assert q.batch_shape == (3, 2)
    assert q[1].batch_shape == (2,)
    assert torch.equal(q[1].mean, q.mean[1])
    (slope,) = torch.autograd.grad(q.mean.sum(), means)
    assert (slope > 0).all()
