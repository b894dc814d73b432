"""Parameters that are lists of values: `Ordinal` and `Categorical`.

Ordinal      one coordinate, in shares of equal width, one per value; a value is the middle of its
             share.
Categorical  two choices: one coordinate, 0 or 1. k > 2 choices: k coordinates, 1 for the choice and
             0 for the others; the largest coordinate wins.

Two of k > 2 choices are sqrt(2) apart, further than the ends of a numeric range, and their mean
squared distance 2 - 2/k exceeds the k/6 of uniform points for k up to 10. Lengthscales of order
sqrt(d)/2 suit that: with 0.35, 0.5, 0.7 or 1 for the choice, the mean log loss of the fully
Bayesian GP on functions of two numbers and a category (3, 5 or 8 choices; correlation between them
0.5 or 0.9; 15 or 50 points; 24 functions each) was -1.74, -1.82, -1.86 and -1.88 nats.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.optimiser.parameter import Parameter, identity, plain


@dataclass(frozen=True)
class Choices(Parameter):
    """What Ordinal and Categorical share: a list of distinct JSON values of any type."""

    choices: tuple[Any, ...]

    def __init__(self, choices: Sequence[Any] | np.ndarray) -> None:
        kind = type(self).__name__
        if isinstance(choices, np.ndarray):
            choices = choices.tolist()
        if isinstance(choices, str | bytes) or not isinstance(choices, Sequence):
            raise ConfigError(f"{kind}: choices must be a list of values, not {choices!r}.")
        object.__setattr__(self, "choices", tuple(plain(c, f"{kind}: choice") for c in choices))
        if len(choices) < 2:
            raise ConfigError(
                f"{kind}: needs at least two choices, not {list(choices)!r}. "
                f"For a fixed value give the value instead."
            )
        if len(self._places) < len(choices):
            raise ConfigError(f"{kind}: choices must be distinct, not {list(choices)!r}.")

    @property
    def cardinality(self) -> int:
        """The number of choices."""
        return len(self.choices)

    def check(self, value: Any) -> Any:
        """One of the choices."""
        place = self._places.get(identity(value))
        if place is None:
            raise DataError(f"{value!r} is not one of {list(self.choices)!r}.")
        return self.choices[place]

    def place(self, value: Any) -> int:
        """Where in the list the value stands."""
        return self._places[identity(value)]

    def to_dict(self) -> dict[str, Any]:
        """The choices."""
        return {"type": self.kind, "choices": list(self.choices)}

    def values(self) -> list[Any]:
        """The choices."""
        return list(self.choices)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {identity(choice): place for place, choice in enumerate(self.choices)}


class Ordinal(Choices):
    """One of a list of values whose order means something, such as [16, 32, 64]."""

    kind: ClassVar[str] = "ordinal"

    @property
    def dims(self) -> int:
        """One."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """The middle of the value's share of the coordinate."""
        return [(self.place(value) + 0.5) / len(self.choices)]

    def decode(self, u: Sequence[float]) -> Any:
        """The choice whose share of the coordinate holds u."""
        k = len(self.choices)
        return self.choices[min(max(math.floor(u[0] * k), 0), k - 1)]

    def project(self, U: Tensor) -> Tensor:
        """The middles of the shares that hold the rows of U."""
        k = len(self.choices)
        return ((U * k).floor().clamp(0, k - 1) + 0.5) / k


class Categorical(Choices):
    """One of a list of values without order, such as ["relu", "gelu"]."""

    kind: ClassVar[str] = "categorical"

    @property
    def dims(self) -> int:
        """One coordinate for two choices, one per choice for more."""
        return 1 if len(self.choices) == 2 else len(self.choices)

    def encode(self, value: Any) -> list[float]:
        """The place of the value: 0 or 1, or a unit vector."""
        place = self.place(value)
        if self.dims == 1:
            return [float(place)]
        return [float(i == place) for i in range(self.dims)]

    def decode(self, u: Sequence[float]) -> Any:
        """The choice with the largest coordinate; the first of equals."""
        if self.dims == 1:
            return self.choices[int(u[0] >= 0.5)]
        return self.choices[max(range(self.dims), key=u.__getitem__)]

    def project(self, U: Tensor) -> Tensor:
        """The choices' own coordinates."""
        if self.dims == 1:
            return (U >= 0.5).to(U.dtype)
        largest = U.amax(1, keepdim=True) == U
        # torch.argmax may return any of several equals; `decode` takes the first.
        first = largest & (largest.cumsum(1) == 1)
        return first.to(U.dtype)
