"""Between the user's y and the z a network knows.

    t = (sign y - centre) / scale,    z = (T(t) - mean) / sd

z is maximised (sign = -1 when the user minimises) and, as in the paper, has mean 0 and standard
deviation 1 over the data. Centre and scale are those of the bulk of the data: median, and half of
the width of the middle 68 %, but not much more than the better half of that: many results that are
far worse, such as penalties for failures, are no scale for the good ones. Where the data give no
scale (a single value, or values that differ by rounding only) it is the size of the values, or 1 if
they are zero.

T is a power transform (`amortes.nets.distributions.power`), and part of the model. Objectives are
often skewed: a learning rate that is too large gives a loss of thousands, and next to that all that
is good looks the same. The model is that z is a Gaussian process, for a power λ between -1 and 3
(Snelson et al., "Warped Gaussian processes", NeurIPS 2003). λ is chosen by the evidence of the
data, all hyperparameters considered, with the Jacobian:

    log p(y | λ) = log p(z) + sum log dz/dy.

The network compares all λ as it infers hyperparameters (`Network.condition_likeliest`), beginning
with the one by which independent values would be likeliest. HEBO (Cowen-Rivers et al., JAIR 2022)
takes that one; the λ of the evidence predicts better: docs/log.md, 2026-11-18.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.base import Network
from amortes.nets.distributions import GaussianMixture, PowerTransformed, Predictive
from amortes.nets.distributions.power import (
    inverse_power_transform,
    log_power_slope,
    power_transform,
)

LARGEST = 1e100
"""Values beyond this are refused: squares in the user's units would overflow."""
SMALLEST = 1e-100
"""Spreads below this count as none: their squares would underflow."""
ROUNDING = 1e-13
"""Values that differ by less than this share of their size differ by rounding."""
BULK = (0.16, 0.84)
"""Quantiles that give the scale; those of a normal distribution are two sds apart."""
SKEW = 10.0
"""How many times the distance from the centre to the upper quantile the scale may be."""
BEYOND = 10.0
"""How many times the range of the data beyond these predictions may reach."""
POWERS = tuple(-1.0 + 0.5 * i for i in range(9))
LEAST_POINTS = 4
"""Results below which there is nothing to choose by."""
SPREAD = 0.75
"""Standard deviation of the prior of λ, about 1."""
FROM_SCRATCH = 20
"""Results below which every fit is from scratch."""


@dataclass(frozen=True)
class Units:
    """How the user's y and the network's z correspond."""

    sign: float
    centre: float
    scale: float
    power: float
    mean: float
    sd: float
    low: float  # t is not believed beyond low and high
    high: float

    @classmethod
    def of(cls, y: Tensor, *, maximise: bool) -> Self:
        """The units of data y, `n` with n >= 1, finite, with power 1: no transform."""
        size = float(y.abs().max())
        if size > LARGEST:
            raise DataError(
                f"y has a value of size {size:g}; at most {LARGEST:g} is supported. "
                "Rescale the objective, or take its logarithm."
            )
        sign = 1.0 if maximise else -1.0
        centre, scale = _bulk(sign * y)
        t = (sign * y - centre) / scale
        low, high = float(t.min()), float(t.max())
        reach = BEYOND * max(high - low, 1.0)
        units = cls(sign, centre, scale, 1.0, 0.0, 1.0, low - reach, high + reach)
        return units.with_power(1.0, y)

    def with_power(self, power: float, y: Tensor) -> Self:
        """Those of the same data y, with another power."""
        v = power_transform(self._standard(y), power)
        sd = 1.0 if without_spread(y) else float(v.std())
        return dataclasses.replace(self, power=power, mean=float(v.mean()), sd=sd)

    def with_powers(
        self, powers: Sequence[float], y: Tensor
    ) -> "tuple[list[Units], Tensor, Tensor]":
        """Those of the same data y, `n`, with several powers, the z of y and log |dz/dy|.

        `m x n` each. Powers by which outliers overflow are left out.
        """
        t, power = self._standard(y), torch.tensor(powers, dtype=y.dtype)[:, None]
        v = power_transform(t, power)
        mean, sd = v.mean(-1, keepdim=True), v.std(-1, keepdim=True)
        if without_spread(y):
            sd = torch.ones_like(sd)
        z, slope = (v - mean) / sd, log_power_slope(t, power) - (self.scale * sd).log()
        finite = z.isfinite().all(-1)
        rows = torch.cat([power, mean, sd], dim=-1)[finite].tolist()
        units = [dataclasses.replace(self, power=p, mean=m, sd=s) for p, m, s in rows]
        return units, z[finite], slope[finite]

    def to_network(self, y: Tensor) -> Tensor:
        """The z of values y."""
        return (power_transform(self._standard(y), self.power) - self.mean) / self.sd

    def log_slope(self, y: Tensor) -> Tensor:
        """log |dz/dy| at values y."""
        constant = math.log(self.scale * self.sd)
        return log_power_slope(self._standard(y), self.power) - constant

    def value(self, z: Tensor) -> Tensor:
        """The y of values z."""
        t = inverse_power_transform(self.mean + self.sd * z, self.power)
        return self.sign * (self.centre + self.scale * t.clamp(self.low, self.high))

    def to_user(self, z: Predictive) -> Predictive:
        """The distribution of y given that of z."""
        v = z.affine(*(torch.tensor(c, dtype=torch.float64) for c in (self.sd, self.mean)))
        scale, shift = self.sign * self.scale, self.sign * self.centre
        if self.power == 1.0 or not isinstance(v, GaussianMixture):
            return v.affine(*(torch.tensor(c, dtype=torch.float64) for c in (scale, shift)))
        return PowerTransformed(
            v, self.power, low=self.low, high=self.high, scale=scale, shift=shift
        )

    def _standard(self, y: Tensor) -> Tensor:
        return (self.sign * y - self.centre) / self.scale


def _bulk(u: Tensor) -> tuple[float, float]:
    """Centre and scale of values, from their quantiles; without these from all of them."""
    # Of the values themselves, from inside: one outlier among a few must not be part of a scale.
    low, high = (
        float(torch.quantile(u, level, interpolation=side))
        for level, side in zip(BULK, ("higher", "lower"), strict=True)
    )
    centre = float(torch.quantile(u, 0.5))
    least = max(ROUNDING * max(abs(low), abs(high)), SMALLEST)
    if high - low > least:
        half = 0.5 * (high - low)
        return centre, min(half, SKEW * (high - centre)) if high - centre > least else half
    if not without_spread(u):
        return centre, float(u.std())
    return centre, abs(centre) if abs(centre) > SMALLEST else 1.0


class Earlier(NamedTuple):
    """What a fit to the first of the results has found."""

    n: int  # of these results; 0 if some of them have changed
    units: Units
    state: Any  # of the network


def choose_units(
    network: Network[Any], X: Tensor, y: Tensor, *, maximise: bool, earlier: Earlier | None = None
) -> tuple[Units, Any]:
    """The units that explain y, `n`, at X, `n x d`, best, and the network's state in these.

    Networks that do not know the density of their data take y as it is, and so do others if there
    is little to choose by; they are not conditioned yet: the state is None. If the results after
    the earlier ones are few and no surprise, units and hyperparameters stay; else inference begins
    with those.
    """
    plain = Units.of(y, maximise=maximise)
    if len(y) < LEAST_POINTS or float(plain.to_network(y).std()) == 0.0 or not network.has_evidence:
        return plain, None
    if earlier is not None and 0 < len(y) - earlier.n < _refreshed_every(len(y)):
        news = earlier.units.to_network(y[earlier.n :])
        state = network.with_results(earlier.state, X[None, earlier.n :], news[None])
        if state is not None:
            return earlier.units, state
    choices, Z, slopes = plain.with_powers(POWERS, y)
    powers = torch.tensor([units.power for units in choices], dtype=slopes.dtype)
    log_prior = -0.5 * ((powers - 1.0) / SPREAD).square()
    slopes = slopes + log_prior[:, None] / len(y)
    independent = (slopes - 0.5 * Z.square()).sum(-1)
    if earlier is not None:
        independent[powers == earlier.units.power] = torch.inf
    order = independent.argsort(descending=True)
    choices, Z, slopes = [choices[i] for i in order], Z[order], slopes[order]
    with torch.no_grad():
        state, choice = network.condition_likeliest(
            X[None], Z[None], slopes[None], None if earlier is None else earlier.state
        )
    return choices[int(choice)], state


def milestones(n: int) -> list[int]:
    """How many of n results, the first ones, to fit to in turn, each fit beginning with the last.

    One result more changes little of what is known about hyperparameters. So from `FROM_SCRATCH`
    results on only the first of these fits is from scratch, every 4 results, every 8 from 40 on, 16
    from 80 on, and so forth. The second follows it by a few steps, and the last one keeps its
    hyperparameters if it can: docs/log.md, 2026-11-18.
    """
    if n < FROM_SCRATCH:
        return [n]
    return sorted({n - n % (2 << (n // 20).bit_length()), n - n % _refreshed_every(n), n})


def _refreshed_every(n: int) -> int:
    """Results after which hyperparameters are inferred anew: 4, 8 from 80 on, 16 from 160 on."""
    return max(4, 1 << (n // 20).bit_length())


def without_spread(y: Tensor) -> bool:
    """Whether values y, `n` with n >= 1, count as equal: they differ by rounding, or not at all."""
    spread = float(y.std()) if len(y) > 1 else 0.0
    return spread <= max(ROUNDING * float(y.abs().max()), SMALLEST)


def check_values(y: Tensor, n: int) -> None:
    """Raise DataError unless y is `n`, float64 and finite."""
    if y.shape != (n,):
        raise DataError(f"y must have one value per row of X, shape ({n},), not {tuple(y.shape)}.")
    if y.dtype != torch.float64:
        raise DataError(f"y must be float64, not {y.dtype}; convert it with `.double()`.")
    if not math.isfinite(float(y.sum())) and not bool(y.isfinite().all()):
        bad = (~y.isfinite()).nonzero().flatten().tolist()
        raise DataError(
            f"y must be finite, but is NaN or infinite in rows {bad[:10]}; leave failed "
            "evaluations out."
        )
