"""What every parameter of a space can do: check values, and map them to the unit cube and back."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from amortes.errors import ConfigError, shown


class Parameter(ABC):
    """One parameter of a space."""

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
    def decode_all(self, U: Tensor) -> np.ndarray:
        """The values, `n`, whose regions hold the rows of U, `n x dims`."""

    @abstractmethod
    def project(self, U: Tensor) -> Tensor:
        """The coordinates, `n x dims`, of the values whose regions hold the rows of U."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `Space.from_dict` inverts it."""

    def values(self) -> list[Any]:
        """All values of a finite parameter."""
        raise TypeError(f"{self} has no finite list of values.")

    def to_json(self, value: Any) -> Any:
        """What a file has for a checked value; `from_json` inverts it."""
        return value

    def from_json(self, stored: Any) -> Any:
        """The value a file has; a `DataError` if there is no such value."""
        return self.check(stored)


def is_plain(value: Any) -> bool:
    """Whether the value survives JSON unchanged; a tuple or a member of an Enum does not."""
    try:
        # By their texts: a member of an enumeration of strings equals one, but is none.
        return repr(json.loads(json.dumps(value, allow_nan=False))) == repr(value)
    except (TypeError, ValueError, RecursionError):
        return False


def plain(value: Any, what: str) -> Any:
    """The value if it survives JSON unchanged (NumPy scalars become Python's), else an error."""
    if isinstance(value, np.generic):
        value = value.item()
    if not is_plain(value):
        raise ConfigError(
            f"{what} {shown(value)} is not a JSON value (a finite number, string, bool, None, or a "
            f"list or dict of these); tuples would come back as lists, members of an Enum as their "
            f"values."
        )
    return value


def text(value: Any) -> str:
    """A value that is not JSON in words that are the same in another process."""
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return value.__qualname__  # without the module, which may be __main__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
