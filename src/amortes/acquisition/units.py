"""Between the user's y and the z a network knows: z = sign (y - centre) / scale.

As in the paper, centre and scale are the mean and the standard deviation of the observed y, and
z is maximised (sign = -1 when the user minimises). Where the data give no scale (a single value, or
values that differ by rounding only) it is the size of the values, or 1 if they are zero.

Nothing is clipped: of n values none is further than (n - 1) / sqrt(n) standard deviations from the
mean, which networks take. But a value far from all others, such as a penalty of 1e6 for a failure,
squeezes the rest together until they look the same. The optimiser draws such values in (`tail`);
who uses a network in another way should leave them out, or take logarithms.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.distributions import Predictive

LARGEST = 1e100
"""Values beyond this are refused: squares in the user's units would overflow."""
SMALLEST = 1e-100
"""Spreads below this count as none: their squares would underflow."""
ROUNDING = 1e-13
"""Values that differ by less than this share of their size differ by rounding."""


@dataclass(frozen=True)
class Units:
    """How the user's y and the network's z correspond."""

    centre: float
    scale: float
    sign: float

    @classmethod
    def of(cls, y: Tensor, *, maximise: bool) -> Self:
        """The units of data y, `n` with n >= 1, finite."""
        size = float(y.abs().max())
        if size > LARGEST:
            raise DataError(
                f"y has a value of size {size:g}; at most {LARGEST:g} is supported. "
                "Rescale the objective, or take its logarithm."
            )
        centre = float(y.mean())
        if without_spread(y):
            spread = abs(centre) if abs(centre) > SMALLEST else 1.0
        else:
            spread = float(y.std())
        return cls(centre, spread, 1.0 if maximise else -1.0)

    def to_network(self, y: Tensor) -> Tensor:
        """The z of values y."""
        return self.sign * (y - self.centre) / self.scale

    def to_user(self, z: Predictive) -> Predictive:
        """The distribution of y given that of z."""
        return z.affine(self._tensor(self.sign * self.scale), self._tensor(self.centre))

    def to_utility(self, z: Predictive) -> Predictive:
        """The distribution of y, or of -y when the user minimises: bigger is better."""
        return z.affine(self._tensor(self.scale), self._tensor(self.sign * self.centre))

    @staticmethod
    def _tensor(value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64)


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
