"""What every predictive distribution must satisfy, against integrals of its own density.

The density itself is checked in the test of each distribution; here everything else is compared
with composite Gauss-Legendre integrals of exp(log_prob) in float64.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.nets.distributions import Predictive

DTYPES = [torch.float32, torch.float64]
BATCH = (3, 2)


def integrate(f: Callable[[Tensor], Tensor], edges: Tensor) -> Tensor:
    """∫ f over the panels between sorted `edges` (float64); f maps `n` extra leading points."""
    t, w = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(20))
    low, high = edges[:-1, None], edges[1:, None]
    y = (low + (high - low) * 0.5 * (t + 1.0)).flatten()
    weights = (0.5 * (high - low) * w).flatten()
    return (weights[:, None, None] * f(y)).sum(0)


class PredictiveConformance(ABC):
    # What a quadrature is allowed on top of rounding, in nats.
    entropy_error = 0.0
    cross_entropy_error = 0.0

    @abstractmethod
    def make(self, dtype: torch.dtype) -> Predictive:
        """A batch of shape BATCH with leaf parameters that require gradients."""

    @abstractmethod
    def parameters(self, predictive: Predictive) -> list[Tensor]:
        """The tensors gradients must reach."""

    @abstractmethod
    def edges(self) -> Tensor:
        """Panel edges between which the density is smooth, and outside which it is nothing."""

    def expect(self, f: Callable[[Tensor], Tensor], *kinks: float) -> Tensor:
        """E f(Y) by quadrature, in float64."""
        exact = self.make(torch.float64)
        edges = torch.cat([self.edges(), torch.tensor(kinks, dtype=torch.float64)]).sort().values
        with torch.no_grad():
            return integrate(
                lambda y: exact.log_prob(y[:, None, None]).exp() * f(y)[:, None, None], edges
            )

    def check(
        self, actual: Tensor, expected: Tensor, dtype: torch.dtype, extra: float = 0.0
    ) -> None:
        assert actual.dtype == dtype
        rtol = 2e-4 if dtype == torch.float32 else 1e-8
        torch.testing.assert_close(
            actual.double(), expected.expand_as(actual), rtol=rtol, atol=rtol / 100 + extra
        )

    def points(self, dtype: torch.dtype) -> Tensor:
        """Quantiles of the batch, `9 x 3 x 2`."""
        levels = torch.tensor([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999], dtype=dtype)
        return self.make(dtype).icdf(levels[:, None, None]).detach()

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_moments(self, dtype: torch.dtype) -> None:
        predictive = self.make(dtype)
        assert predictive.batch_shape == torch.Size(BATCH)
        mean = self.expect(lambda y: y)
        variance = self.expect(torch.square) - mean.square()
        self.check(self.expect(torch.ones_like).to(dtype), torch.ones(BATCH).double(), dtype)
        self.check(predictive.mean, mean, dtype)
        self.check(predictive.variance, variance, dtype)
        self.check(predictive.sd, variance.sqrt(), dtype)
        ucb = predictive.upper_confidence_bound(4.0)
        self.check(ucb, mean + 2.0 * variance.sqrt(), dtype)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("y", [-2.3, -0.4, 0.37, 1.1, 2.9])
    def test_distribution_function_and_improvements(self, dtype: torch.dtype, y: float) -> None:
        predictive = self.make(dtype)
        at = torch.tensor(y, dtype=dtype)
        below = self.expect(lambda v: (v <= y).double(), y)
        gain = self.expect(lambda v: (v - y).clamp_min(0.0), y)
        self.check(predictive.cdf(at), below, dtype)
        self.check(predictive.probability_of_improvement(at), 1.0 - below, dtype)
        self.check(predictive.expected_improvement(at), gain, dtype)
        self.check(predictive.log_expected_improvement(at), gain.log(), dtype)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_quantiles_invert_the_distribution_function(self, dtype: torch.dtype) -> None:
        predictive = self.make(dtype)
        levels = torch.tensor([1e-5, 0.01, 0.2, 0.5, 0.8, 0.99], dtype=dtype)[:, None, None]
        self.check(predictive.cdf(predictive.icdf(levels)), levels.double(), dtype)
        y = self.points(dtype)
        back = predictive.icdf(predictive.cdf(y))
        spread = predictive.sd.detach().expand_as(y)
        tolerance = 3e-3 if dtype == torch.float32 else 1e-9
        assert ((back - y).abs() / spread).max() < tolerance

    def test_quantile_extremes(self) -> None:
        p = torch.tensor([0.0, 1.0], dtype=torch.float64)[:, None, None]
        ends = self.make(torch.float64).icdf(p)
        assert (ends[0] == -math.inf).all()
        assert (ends[1] == math.inf).all()

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_entropy(self, dtype: torch.dtype) -> None:
        exact = self.make(torch.float64)
        with torch.no_grad():
            expected = integrate(
                lambda y: (
                    -torch.special.xlogy(
                        exact.log_prob(y[:, None, None]).exp(),
                        exact.log_prob(y[:, None, None]).exp(),
                    )
                ),
                self.edges(),
            )
        self.check(self.make(dtype).entropy(), expected, dtype, self.entropy_error)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(("mean", "sd"), [(0.2, 0.7), (-1.5, 1.2), (3.0, 0.5), (0.5, 0.05)])
    def test_cross_entropy(self, dtype: torch.dtype, mean: float, sd: float) -> None:
        exact = self.make(torch.float64)
        edges = torch.cat([self.edges(), mean + sd * torch.linspace(-9, 9, 60).double()])
        with torch.no_grad():
            expected = integrate(
                lambda y: (
                    -torch.from_numpy(stats.norm.pdf(y.numpy(), mean, sd))[:, None, None]
                    * exact.log_prob(y[:, None, None])
                ),
                edges.sort().values,
            )
        actual = self.make(dtype).cross_entropy(
            torch.tensor(mean, dtype=dtype), torch.tensor(sd**2, dtype=dtype)
        )
        self.check(actual, expected, dtype, self.cross_entropy_error)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_affine(self, dtype: torch.dtype, sign: float) -> None:
        scale = sign * torch.tensor([[0.5], [2.0], [3.0]], dtype=dtype)  # 3 x 1: one per dataset
        shift = torch.tensor([[-1.0], [0.0], [4.0]], dtype=dtype)
        base = self.make(dtype)
        other = base.affine(scale, shift)
        y = self.points(dtype)
        moved = scale * y + shift
        size = scale.abs()
        self.check(other.log_prob(moved), (base.log_prob(y) - size.log()).double(), dtype)
        self.check(other.entropy(), (base.entropy() + size.log()).double(), dtype)
        self.check(other.mean, (scale * base.mean + shift).double(), dtype)
        self.check(other.variance, (size.square() * base.variance).double(), dtype)
        below = base.cdf(y) if sign > 0 else base.probability_of_improvement(y)
        self.check(other.cdf(moved), below.double(), dtype)
        self.check(other.probability_of_improvement(moved), 1.0 - below.double(), dtype)
        mean, variance = y[4], torch.full_like(y[4], 0.3)
        crossed = other.cross_entropy(scale * mean + shift, size.square() * variance)
        self.check(crossed, (base.cross_entropy(mean, variance) + size.log()).double(), dtype)
        gain = base.expected_improvement(y)
        if sign < 0:  # E max(best - y, 0) = E max(y - best, 0) - mean + best
            gain = gain - base.mean + y
        self.check(other.expected_improvement(moved)[4:6], (size * gain)[4:6].double(), dtype)
        # There and back again.
        again = other.affine(1.0 / scale, -shift / scale)
        self.check(again.log_prob(y), base.log_prob(y).double(), dtype)

    def test_samples_follow_the_distribution_and_the_generator(self) -> None:
        predictive = self.make(torch.float64)
        before = torch.random.get_rng_state()
        first = predictive.sample(torch.Generator().manual_seed(3), (4000, 5))
        again = predictive.sample(torch.Generator().manual_seed(3), (4000, 5))
        other = predictive.sample(torch.Generator().manual_seed(4), (4000, 5))
        assert torch.equal(before, torch.random.get_rng_state())
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert first.shape == (4000, 5, *BATCH)
        assert not first.requires_grad
        assert predictive.sample(torch.Generator().manual_seed(3)).shape == BATCH
        # Kolmogorov-Smirnov at significance 1e-6 per element of the batch.
        u = predictive.cdf(first).detach().reshape(-1, *BATCH).sort(0).values
        ranks = (torch.arange(len(u)) + 0.5) / len(u)
        assert (u - ranks[:, None, None]).abs().max() < 2.7 / math.sqrt(len(u))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_broadcasting_and_indexing(self, dtype: torch.dtype) -> None:
        predictive = self.make(dtype)
        y = torch.linspace(-2.0, 2.0, 8, dtype=dtype).reshape(4, 1, 2)
        for method in (
            predictive.log_prob,
            predictive.cdf,
            predictive.expected_improvement,
            predictive.probability_of_improvement,
            lambda v: predictive.cross_entropy(v, v.square() + 0.1),
            lambda v: predictive.icdf(torch.sigmoid(v)),
        ):
            wide = method(y)
            assert wide.shape == (4, *BATCH)
            for i in range(4):
                torch.testing.assert_close(wide[i], method(y[i].expand(BATCH)))
        part = predictive[1]
        assert part.batch_shape == (2,)
        torch.testing.assert_close(part.mean, predictive.mean[1])
        torch.testing.assert_close(predictive[..., 1].mean, predictive.mean[..., 1])
        chosen = torch.tensor([2, 0])
        torch.testing.assert_close(predictive[chosen, 1].mean, predictive.mean[chosen, 1])
        torch.testing.assert_close(
            part.log_prob(y[0, 0]), predictive.log_prob(y[0].expand(BATCH))[1]
        )

    def test_a_batch_of_one_without_dimensions(self) -> None:
        one, y = self.make(torch.float64)[1, 0], torch.tensor(0.4, dtype=torch.float64)
        values = [one.mean, one.variance, one.entropy(), one.log_prob(y), one.cdf(y), one.icdf(y)]
        values += [one.cross_entropy(y, y), one.log_expected_improvement(y)]
        values += [one.probability_of_improvement(y), one.sample(torch.Generator())]
        assert all(value.shape == () for value in values)
        assert one.sample(torch.Generator(), (2, 3)).shape == (2, 3)
        assert one.log_prob(torch.zeros(5).double()).shape == (5,)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_extremes_are_finite_with_finite_gradients(self, dtype: torch.dtype) -> None:
        for offset in (-1e4, -40.0, 0.0, 40.0, 1e4):
            predictive = self.make(dtype)
            parameters = self.parameters(predictive)
            y = (predictive.mean + offset * predictive.sd).detach().requires_grad_()
            quantities = {
                "log_prob": predictive.log_prob(y),
                "cdf": predictive.cdf(y),
                "improvement": predictive.expected_improvement(y),
                "log improvement": predictive.log_expected_improvement(y),
                "probability": predictive.probability_of_improvement(y),
                "quantile": predictive.icdf(torch.sigmoid(y.clamp(-16, 15))),
                "cross-entropy": predictive.cross_entropy(y, torch.full_like(y, 1e-12)),
                "entropy": predictive.entropy(),
            }
            for name, value in quantities.items():
                assert torch.isfinite(value).all(), (name, offset)
                gradients = torch.autograd.grad(
                    value.sum(), [*parameters, y], retain_graph=True, allow_unused=True
                )
                for gradient in gradients:
                    assert gradient is None or torch.isfinite(gradient).all(), (name, offset)
