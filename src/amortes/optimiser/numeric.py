"""Parameters that are numbers: `Float` and `Int`.

Float  one coordinate, (v - low) / (high - low), on the logarithm of v if `log`.
Int    one coordinate. An integer owns the values within 1/2 of it, and the coordinate spans
       low - 1/2 to high + 1/2 (their logarithms if `log`): integers of a linear range own equal
       widths, so a uniform point is a uniform integer, the ends included.
"""

import math
import operator
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.optimiser.parameter import Parameter

# Beyond this, neighbouring integers have coordinates too close together for float64.
MAX_INTEGER = 2**48
# What rounding may put a number outside its bounds by, relative to their distance.
ROUNDING = 1e-12


class Numeric(Parameter):
    """What Float and Int share: one coordinate, linear in the number or in its logarithm."""

    low: float
    high: float
    log: bool

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The numbers at coordinates 0 and 1."""

    @property
    def dims(self) -> int:
        """One."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """The share of the bounds below the value."""
        low, high = self._span
        return [((math.log(value) if self.log else value) - low) / (high - low)]

    def natural(self, u: Tensor) -> Tensor:
        """The numbers at coordinates u, of any shape; not rounded."""
        low, high = self._span
        values = low + (high - low) * u
        return values.exp() if self.log else values

    def to_dict(self) -> dict[str, Any]:
        """Bounds and scale."""
        return {"type": self.kind, "low": self.low, "high": self.high, "log": self.log}

    def _natural(self, u: float) -> float:
        low, high = self._span
        value = low + (high - low) * min(max(u, 0.0), 1.0)
        return math.exp(value) if self.log else value

    @property
    def _span(self) -> tuple[float, float]:
        low, high = self.bounds
        return (math.log(low), math.log(high)) if self.log else (low, high)


@dataclass(frozen=True)
class Float(Numeric):
    """A real number in [low, high]; `log=True` if its order of magnitude is what matters."""

    low: float
    high: float
    log: bool = False

    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        for field in ("low", "high"):
            object.__setattr__(self, field, finite(getattr(self, field), f"Float: {field}"))
        if not self.low < self.high or math.isinf(self.high - self.low):
            raise ConfigError(
                f"Float: low must be below high, by a finite amount, not {self.low} and "
                f"{self.high}. For a fixed value give the value instead of a Float."
            )
        _check_log(self.log, "Float")
        if self.log and self.low <= 0:
            raise ConfigError(f"Float: log=True needs low > 0, not {self.low}.")
        if not self._span[0] < self._span[1]:
            raise ConfigError(
                f"Float: the logarithms of {self.low} and {self.high} are the same number; leave "
                f"out log=True."
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high."""
        return self.low, self.high

    @property
    def cardinality(self) -> None:
        """A continuum."""
        return None

    def check(self, value: Any) -> float:
        """A number within the bounds; one outside by rounding counts as the bound."""
        number = _number(value)
        slack = ROUNDING * (self.high - self.low)
        if not self.low - slack <= number <= self.high + slack:
            raise DataError(f"{number} is outside [{self.low}, {self.high}].")
        return min(max(float(number), self.low), self.high)

    def decode(self, u: Sequence[float]) -> float:
        """The value with the share u of the range below it."""
        return min(max(self._natural(u[0]), self.low), self.high)

    def project(self, U: Tensor) -> Tensor:
        """U itself within the cube."""
        return U.clamp(0.0, 1.0)


@dataclass(frozen=True)
class Int(Numeric):
    """A whole number in low..high, both included; `log=True` if its order of magnitude matters."""

    low: int
    high: int
    log: bool = False

    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        for field in ("low", "high"):
            object.__setattr__(self, field, _integer(getattr(self, field), f"Int: {field}"))
        if self.low >= self.high:
            raise ConfigError(
                f"Int: low must be below high, not {self.low} and {self.high}. "
                f"For a fixed value give the value instead of an Int."
            )
        if max(abs(self.low), abs(self.high)) > MAX_INTEGER:
            raise ConfigError(
                f"Int: {self.low}..{self.high} goes beyond 2**48, where neighbours cannot be told "
                f"apart. Use a Float."
            )
        _check_log(self.log, "Int")
        if self.log and self.low < 1:
            raise ConfigError(f"Int: log=True needs low >= 1, not {self.low}.")

    @property
    def bounds(self) -> tuple[float, float]:
        """All that rounds to low..high."""
        return self.low - 0.5, self.high + 0.5

    @property
    def cardinality(self) -> int:
        """How many integers there are in low..high."""
        return self.high - self.low + 1

    def check(self, value: Any) -> int:
        """A whole number within the bounds; 3.0 counts as 3."""
        number = _number(value)
        if number != math.floor(number):
            raise DataError(f"{number} is not a whole number.")
        if not self.low <= number <= self.high:
            raise DataError(f"{number} is outside {self.low}..{self.high}.")
        return int(number)

    def decode(self, u: Sequence[float]) -> int:
        """The integer that owns u."""
        return min(max(math.floor(self._natural(u[0]) + 0.5), self.low), self.high)

    def project(self, U: Tensor) -> Tensor:
        """The coordinates of the integers that own the rows of U."""
        low, high = self._span
        nearest = (self.natural(U.clamp(0.0, 1.0)) + 0.5).floor().clamp(self.low, self.high)
        return ((nearest.log() if self.log else nearest) - low) / (high - low)

    def values(self) -> list[Any]:
        """low..high."""
        return list(range(self.low, self.high + 1))


def _number(value: Any) -> int | float:
    if isinstance(value, np.generic | Tensor) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{value!r} is not a number.")
    if not abs(value) < math.inf:
        raise DataError(f"{value!r} is not a finite number.")
    return value


def _check_log(log: Any, what: str) -> None:
    if not isinstance(log, bool):
        raise ConfigError(f"{what}: log must be True or False, not {log!r}.")


def finite(value: Any, what: str) -> float:
    """The value as a float, or a `ConfigError` about `what`."""
    try:
        return float(_number(value))
    except (DataError, OverflowError):
        raise ConfigError(f"{what} must be a finite number, not {value!r}.") from None


def _integer(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConfigError(f"{what} must be an int, not {value!r}.")
    return operator.index(value)
