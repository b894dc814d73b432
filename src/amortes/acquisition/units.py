"""Between the user's y and the z a network knows.

    t = (sign y - centre) / scale,    z = (T(t) - mean) / sd,

T being a power transform (`amortes.nets.distributions.power`) with power 1, the identity, unless
the data say otherwise (`output_warp`). z is maximised (sign = -1 when the user minimises) and, as
in the paper, has mean 0 and standard deviation 1 over the data. Centre and scale are those of the
bulk of the data: median, and half of the width of the middle 68 %, but not much more than the
better half of that: many results that are far worse, such as penalties for failures, are no scale
for the good ones. Where the data give no scale (a single value, or values that differ by rounding
only) it is the size of the values, or 1 if they are zero.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes.errors import DataError
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
    def of(cls, y: Tensor, *, maximise: bool, power: float = 1.0) -> Self:
        """The units of data y, `n` with n >= 1, finite."""
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
        return units.with_power(power, y)

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
