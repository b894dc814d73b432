"""Power transforms of results: Yeo-Johnson, and the distribution of what was transformed.

    T(t) = ((1 + t)^λ - 1) / λ                  t >= 0
           -((1 - t)^(2 - λ) - 1) / (2 - λ)     t < 0

with logarithms where a power is zero. λ = 1 is the identity, λ < 1 draws in large values, λ > 1
small ones (Yeo & Johnson, "A new family of power transformations", Biometrika 87, 2000).
"""

import copy
import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from amortes.nets.distributions.base import Index, Predictive
from amortes.nets.distributions.mixture import GaussianMixture

NODES = 24
"""Of Gauss-Hermite quadrature."""
EDGE = 1e-9
"""How close to its bound, if it has one, a transformed value may come."""


def power_transform(t: Tensor, power: float | Tensor) -> Tensor:
    """T(t), any shape; powers broadcast with t."""
    power = torch.where(t >= 0.0, power, 2.0 - power)
    none, log = power == 0.0, t.abs().log1p()
    size = torch.expm1(power * log) / power.masked_fill(none, 1.0)
    return t.sign() * torch.where(none, log, size)


def inverse_power_transform(v: Tensor, power: float) -> Tensor:
    """The t with T(t) = v; where T has a bound, and v is beyond, about as far as floats go."""
    up = _inverse_box_cox(v.clamp_min(0.0), power)
    return torch.where(v >= 0.0, up, -_inverse_box_cox((-v).clamp_min(0.0), 2.0 - power))


def log_power_slope(t: Tensor, power: float | Tensor) -> Tensor:
    """log dT/dt; powers broadcast with t."""
    return (power - 1.0) * t.sign() * t.abs().log1p()


def _inverse_box_cox(v: Tensor, power: float) -> Tensor:
    """The t >= 0 with ((1 + t)^power - 1) / power = v."""
    if power == 0.0:
        return torch.expm1(v.clamp_max(600.0))
    inside = (power * v).clamp_min(EDGE - 1.0)
    return torch.expm1((inside.log1p() / power).clamp_max(600.0))


class PowerTransformed(Predictive):
    """The distribution of Y = scale * T^-1(V) + shift, V being a mixture of Gaussians.

    Values of T^-1(V) are kept within [low, high]: far beyond what was seen nothing is claimed. The
    scale may be negative.
    """

    def __init__(
        self,
        base: GaussianMixture,
        power: float,
        *,
        low: float,
        high: float,
        scale: float,
        shift: float,
    ) -> None:
        self.base, self.power, self.low, self.high = base, power, low, high
        self.scale, self.shift = scale, shift

    def _to_user(self, v: Tensor) -> Tensor:
        t = inverse_power_transform(v, self.power).clamp(self.low, self.high)
        return self.scale * t + self.shift

    def _to_base(self, y: Tensor) -> Tensor:
        return power_transform(self._standardise(y), self.power)

    def _standardise(self, y: Tensor) -> Tensor:
        return (y - self.shift) / self.scale

    def _outside(self, y: Tensor, inside: Tensor, below: float) -> Tensor:
        """Probabilities: those `inside`, that `below` all values of Y, and one less it above."""
        t = self._standardise(y)
        if self.scale > 0:
            under, over = t < self.low, t >= self.high
        else:
            under, over = t > self.high, t <= self.low
        return inside.masked_fill(under, below).masked_fill(over, 1.0 - below)

    def _expectation(self, values: Tensor) -> Tensor:
        """The mean over V of a function with these values at `_nodes`."""
        weights = self.base.weights[..., None] * hermite()[1].to(values)
        return (weights * values).sum((-1, -2))

    def _nodes(self) -> Tensor:
        """Quadrature nodes of V: `... x k x NODES`."""
        return self.base.means[..., None] + self.base.sds[..., None] * hermite()[0].to(
            self.base.means
        )

    @property
    def batch_shape(self) -> torch.Size:
        """The shape `...` of the batch."""
        return self.base.batch_shape

    @property
    def mean(self) -> Tensor:
        """E[Y], by quadrature."""
        return self._expectation(self._to_user(self._nodes()))

    @property
    def variance(self) -> Tensor:
        """Var[Y], by quadrature."""
        y = self._to_user(self._nodes())
        return self._expectation((y - self._expectation(y)[..., None, None]).square())

    def log_prob(self, y: Tensor) -> Tensor:
        """The density of V at T((y - shift) / scale), times dV/dY."""
        slope = log_power_slope(self._standardise(y), self.power) - math.log(abs(self.scale))
        return self.base.log_prob(self._to_base(y)) + slope

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y)."""
        if self.scale < 0:
            return self._outside(y, self.base.probability_of_improvement(self._to_base(y)), 0.0)
        return self._outside(y, self.base.cdf(self._to_base(y)), 0.0)

    def icdf(self, p: Tensor) -> Tensor:
        """The p-quantile."""
        return self._to_user(self.base.icdf(p if self.scale > 0 else 1.0 - p))

    def entropy(self) -> Tensor:
        """H[V] + E[log dY/dV], by quadrature."""
        t = inverse_power_transform(self._nodes(), self.power).clamp(self.low, self.high)
        slope = self._expectation(log_power_slope(t, self.power))
        return self.base.entropy() - slope + math.log(abs(self.scale))

    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """By quadrature over the target."""
        x, w = (t.to(mean) for t in hermite())
        shape = (NODES,) + (1,) * max(mean.ndim, len(self.batch_shape))
        y = mean + variance.sqrt() * x.reshape(shape)
        return -(w.reshape(shape) * self.log_prob(y)).sum(0)

    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """Draws of V, transformed."""
        return self._to_user(self.base.sample(generator, shape)).detach()

    def probability_of_improvement(self, best: Tensor) -> Tensor:
        """P(Y > best)."""
        if self.scale < 0:
            return self._outside(best, self.base.cdf(self._to_base(best)), 1.0)
        return self._outside(best, self.base.probability_of_improvement(self._to_base(best)), 1.0)

    def log_expected_improvement(self, best: Tensor) -> Tensor:
        """By quadrature: not for `best` far in the tail."""
        gain = (self._to_user(self._nodes()) - best[..., None, None]).clamp_min(0.0)
        return self._expectation(gain).clamp_min(torch.finfo(gain.dtype).tiny).log()

    def affine(self, scale: Tensor, shift: Tensor) -> "PowerTransformed":
        """For scalars only: the units of one dataset."""
        other = copy.copy(self)
        other.scale = float(scale) * self.scale
        other.shift = float(scale) * self.shift + float(shift)
        return other

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "PowerTransformed":
        part = copy.copy(self)
        part.base = self.base[index]
        return part


@lru_cache(maxsize=1)
def hermite() -> tuple[Tensor, Tensor]:
    """Nodes and weights for the standard normal distribution: `NODES` each."""
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    return torch.from_numpy(x), torch.from_numpy(w / w.sum())
