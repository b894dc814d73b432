"""Parameters that are numbers: `Float` and `Int`.

Float  one coordinate, (v - low) / (high - low), on the logarithm of v if `log`.
Int    one coordinate. An integer owns the values within 1/2 of it, and the coordinate spans
       low - 1/2 to high + 1/2 (their logarithms if `log`): integers of a linear range own equal
       widths, so a uniform point is a uniform integer, the ends included.

With a step the values are low, low + step, ... up to the last that is not above high, as in Optuna;
each owns what is within half a step of it.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from amortes.errors import ConfigError, DataError, shown
from amortes.numbers import as_float

# Beyond this, neighbouring integers have coordinates too close together for float64.
MAX_INTEGER = 2**48
# What rounding may put a number outside its bounds by, relative to their distance.
ROUNDING = 1e-12
# A number this many steps beside the grid is on it, but for rounding.
OFF_GRID = 1e-6


class Numeric:
    """What Float and Int share: one coordinate, linear in the number or in its logarithm."""

    kind: ClassVar[str]
    dims: ClassVar[int] = 1

    low: float
    high: float
    log: bool
    step: float | None

    @property
    def bounds(self) -> tuple[float, float]:
        """The numbers at coordinates 0 and 1: with a step, half of one beyond the values."""
        if self.step is None:
            return self.low, self.high
        return self.low - 0.5 * self.step, self.low + (self._steps + 0.5) * self.step

    @property
    def cardinality(self) -> int | None:
        """The number of steps and one; None without a step."""
        return None if self.step is None else self._steps + 1

    def encode(self, value: Any) -> list[float]:
        """The share of the bounds below the value."""
        low, high = self._span
        return [((math.log(value) if self.log else value) - low) / (high - low)]

    def decode(self, u: Sequence[float]) -> Any:
        """The value with the share u of the range below it, or on the grid the one that owns u."""
        low, high = self._span
        value = low + (high - low) * min(max(u[0], 0.0), 1.0)
        value = math.exp(value) if self.log else value
        if self.step is None:
            return min(max(value, self.low), self.high)
        place = math.floor((value - self.low) / self.step + 0.5)
        return self._value(min(max(place, 0), self._steps))

    def decode_all(self, U: Tensor) -> np.ndarray:
        """The values, `n`, that own the rows of U."""
        values = self._nearest(U[:, 0]).numpy()
        return values.astype(np.int64) if isinstance(self.low, int) else values

    def natural(self, u: Tensor) -> Tensor:
        """The numbers at coordinates u, of any shape; not rounded."""
        low, high = self._span
        values = low + (high - low) * u
        return values.exp() if self.log else values

    def project(self, U: Tensor) -> Tensor:
        """The coordinates of the values that own the rows of U."""
        if self.step is None:
            return U.clamp(0.0, 1.0)
        low, high = self._span
        nearest = self._nearest(U)
        return ((nearest.log() if self.log else nearest) - low) / (high - low)

    def values(self) -> list[Any]:
        """All values, if there is a step."""
        if self.step is None:
            raise TypeError(f"{self} has no finite list of values.")
        return [self._value(place) for place in range(self._steps + 1)]

    def to_json(self, value: Any) -> Any:
        """What a file has for a checked value."""
        return value

    def to_dict(self) -> dict[str, Any]:
        """Bounds, scale and step, unless it is the default."""
        description = {"type": self.kind, "low": self.low, "high": self.high, "log": self.log}
        usual = None if isinstance(self.low, float) else 1
        return description if self.step == usual else description | {"step": self.step}

    def _nearest(self, u: Tensor) -> Tensor:
        """The values that own coordinates u, of any shape."""
        values = self.natural(u.clamp(0.0, 1.0))
        if self.step is None:
            return values.clamp(self.low, self.high)
        places = ((values - self.low) / self.step + 0.5).floor().clamp(0, self._steps)
        return self.low + places * self.step

    def _value(self, place: int) -> Any:
        """The value `place` steps above low; in decimals, so that 0.1 + 2 * 0.1 is 0.3."""
        return type(self.low)(_decimal(self.low) + place * _decimal(self.step))

    @cached_property
    def _steps(self) -> int:
        """The number of steps between the first value and the last; exact in decimals."""
        if self.step is None:
            return 0
        return int((_decimal(self.high) - _decimal(self.low)) // _decimal(self.step))

    @property
    def _span(self) -> tuple[float, float]:
        low, high = self.bounds
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def _check_range(self) -> None:
        """Raise `ConfigError` unless low, high, log and step, which are of their types, agree."""
        kind = type(self).__name__
        instead = f"an {kind}" if kind == "Int" else f"a {kind}"
        if not self.low < self.high or math.isinf(self.high - self.low):
            raise ConfigError(
                f"{kind}: low must be below high by a finite amount, not {self.low} and "
                f"{self.high}. To fix a parameter, pass its value instead of {instead}."
            )
        if not isinstance(self.log, bool):
            raise ConfigError(f"{kind}: log must be True or False, not {shown(self.log)}.")
        if self.log and self.step not in (None, 1 if kind == "Int" else None):
            raise ConfigError(f"{kind}: use either log=True or a step, not both.")
        if self.log and self.low <= 0:
            needed = "low >= 1" if kind == "Int" else "low > 0"
            raise ConfigError(f"{kind}: log=True needs {needed}, not {self.low}.")
        if self.step is None:
            return
        if not self.step > 0:
            raise ConfigError(f"{kind}: step must be positive, not {self.step}.")
        if max(abs(self.low), abs(self.high), self.high - self.low) > 2 * MAX_INTEGER * self.step:
            raise ConfigError(
                f"{kind}: a step of {self.step} is too small for values from {self.low} to "
                f"{self.high}. Leave out the step."
            )
        if self._steps < 1:
            raise ConfigError(
                f"{kind}: with a step of {self.step}, the only value from {self.low} to "
                f"{self.high} is {self.low}. Use a smaller step, or pass the value instead of "
                f"{instead}."
            )

    def _beside(self, number: float) -> DataError:
        first, second, last = (self._value(place) for place in (0, 1, self._steps))
        return DataError(f"{number} is not one of the steps {first}, {second}, ..., {last}.")


@dataclass(frozen=True)
class Float(Numeric):
    """A real number between `low` and `high`.

    low: the smallest value.
    high: the largest value.
    log: True for quantities that vary over orders of magnitude, such as a learning rate.
    step: restricts the values to low, low + step, and so on; not together with `log`.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        for name in ("low", "high") if self.step is None else ("low", "high", "step"):
            object.__setattr__(self, name, finite(getattr(self, name), f"Float: {name}"))
        self._check_range()
        if not self._span[0] < self._span[1]:
            raise ConfigError(
                f"Float: {self.low} and {self.high} are so close that their logarithms are equal; "
                f"leave out log=True."
            )

    def check(self, value: Any) -> float:
        """A number within the bounds; one outside, or beside the grid, by rounding is moved."""
        number = _number(value)
        slack = ROUNDING * (self.high - self.low)
        if not self.low - slack <= number <= self.high + slack:
            raise DataError(f"{shown(value)} is outside [{self.low}, {self.high}].")
        if self.step is None:
            return min(max(number, self.low), self.high)
        steps = (number - self.low) / self.step
        if not abs(steps - round(steps)) <= OFF_GRID or not 0 <= round(steps) <= self._steps:
            raise self._beside(number)
        return float(self._value(round(steps)))

    from_json = check


@dataclass(frozen=True)
class Int(Numeric):
    """A whole number from `low` to `high`, both included.

    low: the smallest value.
    high: the largest value.
    log: True for quantities that vary over orders of magnitude, such as the width of a layer.
    step: restricts the values to low, low + step, and so on; not together with `log`.
    """

    low: int
    high: int
    log: bool = False
    step: int = field(default=1, kw_only=True)

    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _integer(getattr(self, name), f"Int: {name}"))
        if max(abs(self.low), abs(self.high), abs(self.step)) > MAX_INTEGER:
            raise ConfigError(
                f"Int: {shown(self.low)}..{shown(self.high)} goes beyond 2**48, the largest "
                f"integer supported. Use a Float."
            )
        self._check_range()

    def check(self, value: Any) -> int:
        """A whole number within the bounds; 3.0 counts as 3."""
        number = _number(value)
        if not self.low <= number <= self.high:
            raise DataError(f"{shown(value)} is outside {self.low}..{self.high}.")
        if not number.is_integer():
            raise DataError(f"{shown(value)} is not a whole number.")
        if (int(number) - self.low) % self.step:
            raise self._beside(int(number))
        return int(number)

    from_json = check


def _decimal(number: float | None) -> Decimal:
    """The number as it is written."""
    return Decimal(repr(number))


def _number(value: Any) -> float:
    number = None if isinstance(value, bool | np.bool_) else as_float(value)
    if number is None or math.isnan(number):
        raise DataError(f"{shown(value)} is not a number.")
    return number


def finite(value: Any, what: str) -> float:
    """The value as a float, or a `ConfigError` about `what`."""
    number = None if isinstance(value, bool | np.bool_) else as_float(value)
    if number is None or not math.isfinite(number):
        raise ConfigError(f"{what} must be a finite number, not {shown(value)}.")
    return number


def _integer(value: Any, what: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except Exception:  # TypeError, or what another library raises
        raise ConfigError(f"{what} must be an int, not {shown(value)}.") from None
