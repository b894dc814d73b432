"""Parameters that are lists of values: `Ordinal` and `Categorical`.

Ordinal      one coordinate, in shares of equal width, one per value; a value is the middle of its
             share.
Categorical  the points of `codebook`: two choices 0 or 1, up to 8 unit vectors, more a few
             coordinates. The choice whose point is nearest owns a point; of unit vectors that is
             the one with the largest coordinate.

Two of 3 to 8 choices are sqrt(2) apart, further than the ends of a numeric range, and their mean
squared distance 2 - 2/k exceeds the k/6 of uniform points. Lengthscales of order sqrt(d)/2 suit
that: with 0.35, 0.5, 0.7 or 1 for the choice, the mean log loss of the fully Bayesian GP on
functions of two numbers and a category (3, 5 or 8 choices; correlation between them 0.5 or 0.9; 15
or 50 points; 24 functions each) was -1.74, -1.82, -1.86 and -1.88 nats.

Choices may be any values of JSON, and anything hashable: members of an Enum, tuples, classes,
functions. Files have the values of a parameter as they are if all its choices are JSON, else their
places in the list; a list that is not JSON has to be given again when the file is read.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, DataError, shown
from amortes.optimiser.codebook import MOST, codebook
from amortes.optimiser.numeric import Float, Int
from amortes.optimiser.text import in_words, is_plain
from amortes.threads import on_cpu

SHOWN = 10
"""Choices listed in a message."""


@dataclass(frozen=True)
class Choices(ABC):
    """What Ordinal and Categorical share: a list of distinct values of any type."""

    choices: tuple[Any, ...]

    kind: ClassVar[str]

    def __init__(self, choices: Sequence[Any] | np.ndarray | type[Enum]) -> None:
        kind = type(self).__name__
        if isinstance(choices, np.ndarray):
            choices = choices.tolist()
        elif isinstance(choices, type) and issubclass(choices, Enum):
            choices = list(choices)
        if isinstance(choices, str | bytes) or not isinstance(choices, Sequence):
            raise ConfigError(f"{kind}: choices must be a list of values, not {shown(choices)}.")
        object.__setattr__(self, "choices", tuple(_checked(c, kind) for c in choices))
        if len(choices) < 2:
            raise ConfigError(
                f"{kind}: needs at least two choices, not {shown(list(choices))}. "
                f"To fix a parameter, pass its value instead."
            )
        if len(self._places) < len(choices):
            raise ConfigError(f"{kind}: choices must be distinct, not {self._listed}.")

    @property
    def dims(self) -> int:
        """Number of coordinates: at most 11."""
        return self._codes.shape[1]

    @property
    def cardinality(self) -> int:
        """The number of choices."""
        return len(self.choices)

    def check(self, value: Any) -> Any:
        """One of the choices."""
        try:
            return self.choices[self.place(value)]
        except (KeyError, TypeError, RecursionError):
            raise DataError(f"{shown(value)} is not one of {self._listed}.") from None

    def place(self, value: Any) -> int:
        """Where in the list the value stands."""
        return self._places[identity(value)]

    def to_dict(self) -> dict[str, Any]:
        """The choices, or texts of them if they are not all JSON."""
        if self.is_json:
            return {"type": self.kind, "choices": list(self.choices)}
        return {"type": self.kind, "objects": [in_words(choice) for choice in self.choices]}

    def to_json(self, value: Any) -> Any:
        """The value, or its place if the choices are not all JSON."""
        return value if self.is_json else self.place(value)

    def from_json(self, stored: Any) -> Any:
        """The choice a file has."""
        if self.is_json:
            return self.check(stored)
        if type(stored) is not int or not 0 <= stored < len(self.choices):
            raise DataError(f"{shown(stored)} is not the place of one of {self._listed}.")
        return self.choices[stored]

    def values(self) -> list[Any]:
        """The choices."""
        return list(self.choices)

    def encode(self, value: Any) -> list[float]:
        """The point of the value."""
        code: list[float] = self._codes[self.place(value)].tolist()
        return code

    def decode(self, u: Sequence[float]) -> Any:
        """The choice that owns u; the first of equals."""
        return self.choices[int(self._owner(torch.tensor([u], dtype=torch.float64)))]

    def decode_all(self, U: Tensor) -> np.ndarray:
        """The choices that own the rows of U; an array of objects if they are not of one type."""
        plain = isinstance(self.choices[0], bool | int | float | str)
        one_kind = plain and len({type(choice) for choice in self.choices}) == 1
        array = np.array(self.choices) if one_kind else np.fromiter(self.choices, dtype=object)
        return np.take(array, self._owner(U).numpy())

    def project(self, U: Tensor) -> Tensor:
        """The points of the choices that own the rows of U."""
        return self._codes[self._owner(U)].to(U.dtype)

    @property
    @abstractmethod
    def _codes(self) -> Tensor:
        """The points of the choices: `k x dims`."""

    @abstractmethod
    def _owner(self, U: Tensor) -> Tensor:
        """The places, `n`, of the choices that own U, `n x dims`."""

    @cached_property
    def is_json(self) -> bool:
        """Whether a file can have the choices as they are."""
        return all(map(is_plain, self.choices))

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {identity(choice): place for place, choice in enumerate(self.choices)}

    @property
    def _listed(self) -> str:
        """The choices as a message has them."""
        if len(self.choices) <= SHOWN:
            return f"[{', '.join(map(shown, self.choices))}]"
        first = ", ".join(map(shown, self.choices[:SHOWN]))
        return f"[{first}, ...] ({len(self.choices)} choices)"


class Ordinal(Choices):
    """A choice among values that have an order, such as `Ordinal([16, 32, 64])`.

    choices: the values, in their order.
    """

    kind: ClassVar[str] = "ordinal"

    @cached_property
    def _codes(self) -> Tensor:
        k = len(self.choices)
        return (torch.arange(k, dtype=torch.float64, device="cpu")[:, None] + 0.5) / k

    def _owner(self, U: Tensor) -> Tensor:
        k = len(self.choices)
        return (U[:, 0] * k).floor().clamp(0, k - 1).long()


@dataclass(frozen=True, init=False)
class Categorical(Choices):
    """A choice among values without an order, such as `Categorical(["relu", "gelu"])`.

    choices: the values, as a list or an `Enum`; or a dict that maps each choice to the parameters
        that exist only for it, such as `{"svm": {"C": Float(1e-3, 1e3)}, "bayes": {}}`.
    """

    branches: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    kind: ClassVar[str] = "categorical"

    def __init__(
        self,
        choices: Sequence[Any] | np.ndarray | type[Enum] | Mapping[Any, Mapping[str, Any] | None],
    ) -> None:
        branches: tuple[Any, ...] = ()
        if isinstance(choices, Mapping):
            branches = tuple({} if branch is None else branch for branch in choices.values())
            choices = list(choices)
        super().__init__(choices)
        for choice, branch in zip(self.choices, branches, strict=False):
            if not isinstance(branch, Mapping):
                raise ConfigError(
                    f"Categorical: choice {shown(choice)} must map to a dict of the parameters "
                    f"that exist only for it (or None), not {shown(branch)}."
                )
        object.__setattr__(self, "branches", branches)
        if len(self.choices) > MOST:
            raise ConfigError(
                f"Categorical: {len(self.choices):,} choices are more than the {MOST:,} supported. "
                f"Describe the choices by numeric parameters, and list the existing configs as the "
                f"pool of a Space."
            )

    @cached_property
    @on_cpu()
    def _codes(self) -> Tensor:
        return codebook(len(self.choices))

    def _owner(self, U: Tensor) -> Tensor:
        """The nearest, by |u - c|^2 less what all have in common; of two, the second owns ties."""
        if len(self.choices) == 2:
            return (U[:, 0] >= 0.5).long()
        codes = self._codes.to(U.dtype)
        return (codes.square().sum(1) - 2.0 * U @ codes.mT).argmin(1)


Parameter = Float | Int | Ordinal | Categorical
"""A parameter checks values, and maps them to the unit cube and back."""


def identity(value: Any) -> Hashable:
    """The same for equal values, and hashable; 1 and 1.0 are equal, 1 and True are not.

    A TypeError if the value, or what a list or dict has in it, is not hashable.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, list | tuple):
        return isinstance(value, tuple), *map(identity, value)
    if isinstance(value, dict):
        return dict, frozenset((identity(k), identity(v)) for k, v in value.items())
    hash(value)
    return value  # type: ignore[no-any-return]


def same(value: Any, known: Any) -> bool:
    """Whether a value of any type is equal to a known one, which is hashable."""
    try:
        return identity(value) in {identity(known)}
    except (TypeError, RecursionError):
        return False


def _checked(choice: Any, kind: str) -> Any:
    """A choice, as Python's own if it is NumPy's; `ConfigError` if it cannot be recognised."""
    if isinstance(choice, np.generic):
        choice = choice.item()
    try:
        hash(identity(choice))
        known = bool(choice == choice) and bool(in_words(choice))  # unlike NaN
    except Exception:  # TypeError, or whatever comparing it raises
        known = False
    if not known:
        raise ConfigError(
            f"{kind}: the choice {shown(choice)} is neither JSON (a finite number, string, bool, "
            f"None, or a list or dict of these) nor hashable, or not equal to itself. Use names as "
            f"choices, and look the objects up in your function."
        )
    return choice
