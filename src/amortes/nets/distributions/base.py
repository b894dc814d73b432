"""What every predictive distribution of y can do, whichever network made it.

All quantities have the batch shape `...` (typically `b x q`), are differentiable in the
parameters, and keep the dtype. Arguments (y, p, best, a target's mean and variance) broadcast
against the batch shape and may have leading sample dimensions.

Y in other units, scale * Y + shift, is one of them again (`Predictive.affine`): `Affine` where a
class has no way of its own.
"""

import copy
import math
from abc import ABC, abstractmethod
from types import EllipsisType

import torch
from torch import Tensor

from amortes.errors import DataError

Index = int | slice | EllipsisType | Tensor | None
"""One entry of an index into the batch dimensions."""


class Predictive(ABC):
    """A batch of one-dimensional distributions; y is maximised."""

    @property
    @abstractmethod
    def batch_shape(self) -> torch.Size:
        """The shape `...` of the batch."""

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """E[y], shape `...`."""

    @property
    @abstractmethod
    def variance(self) -> Tensor:
        """Var[y], shape `...`."""

    @property
    def sd(self) -> Tensor:
        """The standard deviation of y, shape `...`."""
        return self.variance.sqrt()

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """The log density log q(y)."""

    @abstractmethod
    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y)."""

    @abstractmethod
    def icdf(self, p: Tensor) -> Tensor:
        """The p-quantile, for p in [0, 1]."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """-∫ q log q dy in nats, shape `...`."""

    @abstractmethod
    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """-∫ N(y; mean, variance) log q(y) dy: the loss against a Gaussian target."""

    @abstractmethod
    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """Draws of shape `shape + ...` from the given generator; no gradient."""

    @abstractmethod
    def probability_of_improvement(self, best: Tensor) -> Tensor:
        """P(Y > best), accurate relative to its size."""

    @abstractmethod
    def log_expected_improvement(self, best: Tensor) -> Tensor:
        """The log of E max(Y - best, 0), with a useful gradient however far away `best` is."""

    def expected_improvement(self, best: Tensor) -> Tensor:
        """E max(Y - best, 0)."""
        return self.log_expected_improvement(best).exp()

    def upper_confidence_bound(self, beta: float) -> Tensor:
        """Mean + sqrt(beta) standard deviations, shape `...`."""
        return self.mean + math.sqrt(beta) * self.sd

    @abstractmethod
    def affine(self, scale: Tensor, shift: Tensor) -> "Predictive":
        """The distribution of scale * Y + shift; both broadcast to the batch shape.

        Use it to undo a standardisation; a negative scale turns minimisation round.
        """

    @abstractmethod
    def __getitem__(self, index: Index | tuple[Index, ...]) -> "Predictive":
        """The sub-batch at an index into the batch dimensions."""


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


def index_batch(parameter: Tensor, index: Index | tuple[Index, ...]) -> Tensor:
    """Index the batch dimensions of a `... x k` parameter, leaving the last one alone."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(part is ... for part in parts):
        parts = (*parts, ...)
    return parameter[(*parts, slice(None))]


def expand_to(x: Tensor, *shapes: torch.Size) -> Tensor:
    """A view of `x` in the shape it has when broadcast with all `shapes`."""
    if all(shape == x.shape for shape in shapes):  # what follows takes a tenth of a millisecond
        return x
    shape: torch.Size = torch.broadcast_shapes(x.shape, *shapes)  # type: ignore[no-untyped-call]
    return x.expand(shape)
