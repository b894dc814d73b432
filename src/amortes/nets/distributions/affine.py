"""The distribution of scale * Y + shift for any predictive distribution of Y, with scale > 0."""

import copy

import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.distributions.base import Index, Predictive


class Affine(Predictive):
    """A base distribution seen in other units.

    Made by `Predictive.affine`, which also takes negative scales. `scale` and `shift` broadcast to
    the batch shape `...`.
    """

    def __init__(self, base: Predictive, scale: Tensor, shift: Tensor) -> None:
        if not bool((scale > 0).all()):
            raise DataError(f"scale must be positive, got a minimum of {scale.min().item():g}.")
        self.base = base
        self.scale = scale.expand(base.batch_shape)
        self.shift = shift.expand(base.batch_shape)

    def _standardise(self, y: Tensor) -> Tensor:
        return (y - self.shift) / self.scale

    @property
    def batch_shape(self) -> torch.Size:
        """The shape `...` of the batch."""
        return self.base.batch_shape

    @property
    def mean(self) -> Tensor:
        """Scale E[Y] + shift."""
        return self.scale * self.base.mean + self.shift

    @property
    def variance(self) -> Tensor:
        """Scale² Var[Y]."""
        return self.scale.square() * self.base.variance

    def log_prob(self, y: Tensor) -> Tensor:
        """The base's log density at (y - shift) / scale, less log scale."""
        return self.base.log_prob(self._standardise(y)) - self.scale.log()

    def cdf(self, y: Tensor) -> Tensor:
        """The base's distribution function at (y - shift) / scale."""
        return self.base.cdf(self._standardise(y))

    def icdf(self, p: Tensor) -> Tensor:
        """The base's quantile, in the new units."""
        return self.scale * self.base.icdf(p) + self.shift

    def entropy(self) -> Tensor:
        """The base's entropy plus log scale."""
        return self.base.entropy() + self.scale.log()

    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The base's against the standardised target, plus log scale."""
        standardised = self.base.cross_entropy(
            self._standardise(mean), variance / self.scale.square()
        )
        return standardised + self.scale.log()

    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """The base's draws, in the new units."""
        return (self.scale * self.base.sample(generator, shape) + self.shift).detach()

    def probability_of_improvement(self, best: Tensor) -> Tensor:
        """The base's at (best - shift) / scale."""
        return self.base.probability_of_improvement(self._standardise(best))

    def log_expected_improvement(self, best: Tensor) -> Tensor:
        """The base's at (best - shift) / scale, plus log scale."""
        return self.base.log_expected_improvement(self._standardise(best)) + self.scale.log()

    def affine(self, scale: Tensor, shift: Tensor) -> Predictive:
        """Both changes of unit in one."""
        return self.base.affine(scale * self.scale, scale * self.shift + shift)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "Affine":
        part = copy.copy(self)  # without another check
        part.base = self.base[index]
        part.scale, part.shift = self.scale[index], self.shift[index]
        return part
