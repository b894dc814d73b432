"""What every parameter of a space can do: check values, and map them to the unit cube and back."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from amortes.errors import ConfigError


class Parameter(ABC):
    """One parameter of a space; its values are those of JSON."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def dims(self) -> int:
        """Number of coordinates in the unit cube."""

    @property
    @abstractmethod
    def cardinality(self) -> int | None:
        """Number of values, or None for a continuum."""

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value in its own type; a `DataError` if it is not one of this parameter's."""

    @abstractmethod
    def encode(self, value: Any) -> list[float]:
        """The coordinates of a checked value."""

    @abstractmethod
    def decode(self, u: Sequence[float]) -> Any:
        """The value whose region of the unit cube holds `u`."""

    @abstractmethod
    def project(self, U: Tensor) -> Tensor:
        """The coordinates, `n x dims`, of the values whose regions hold the rows of U."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `Space.from_dict` inverts it."""

    def values(self) -> list[Any]:
        """All values of a finite parameter."""
        raise TypeError(f"{self} has no finite list of values.")


def plain(value: Any, what: str) -> Any:
    """The value if it survives JSON unchanged (NumPy scalars become Python's), else an error."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        # By their texts: a member of an enumeration of strings equals one, but is none.
        same = repr(json.loads(json.dumps(value, allow_nan=False))) == repr(value)
    except (TypeError, ValueError):
        same = False
    if not same:
        raise ConfigError(
            f"{what} {value!r} is not a JSON value (a finite number, string, bool, None, or a "
            f"list or dict of these); tuples would come back as lists, members of an Enum as their "
            f"values."
        )
    return value


def identity(value: Any) -> str:
    """Text that is equal for equal values; 1 and 1.0 are equal, 1 and True are not."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=repr)
