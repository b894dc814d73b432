"""Constraints that are known before anything is evaluated.

`Linear`; a text (`Expression`), which files can have; a function (`Allowed`), which they cannot.

    a_1 v_1 + ... + a_k v_k <= upper

The v are users' values, not coordinates. For parameters that are not logarithmic the constraint is
linear in the unit cube too, and `row_in_cube` says how; on a logarithmic one it is curved there.
A constraint about parameters that may be inactive holds where all of them are active.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, shown
from amortes.optimiser.choices import Parameter
from amortes.optimiser.expression import Expression
from amortes.optimiser.numeric import Numeric, finite
from amortes.optimiser.text import in_words

if TYPE_CHECKING:
    from amortes.optimiser.space import Space

LARGEST = 1e100
"""Terms beyond this are refused: they would overflow on the way."""
# Relative to the sizes of the terms: what decoding a point on the boundary may be off by.
SLACK = 1e-9


@dataclass(frozen=True)
class Linear:
    """A weighted sum of parameters that is at most `upper`.

    `Linear({"layers": 8, "width": 1}, upper=96)` means 8 layers + width <= 96. For >=, negate the
    coefficients and `upper`.

    coefficients: the weight of each parameter, by name. The parameters must be `Float` or `Int`.
    upper: the largest allowed value of the sum.
    """

    coefficients: Mapping[str, float]
    upper: float

    vectorized: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.coefficients, Mapping) or not self.coefficients:
            raise ConfigError(
                f"Linear: coefficients must map parameter names to numbers, "
                f"not {self.coefficients!r}."
            )
        numbers = {
            k: finite(a, f"Linear: the coefficient of {k}") for k, a in self.coefficients.items()
        }
        object.__setattr__(self, "coefficients", numbers)
        object.__setattr__(self, "upper", finite(self.upper, "Linear: upper"))

    def given(self, constants: Mapping[str, Any]) -> "Linear":
        """The same about what varies: terms of constants are taken to the right side."""
        known = {name: constants[name] for name in self.coefficients if name in constants}
        values = {k: finite(v, f"Linear: {k} is fixed, so its value") for k, v in known.items()}
        if len(values) == len(self.coefficients):
            raise ConfigError(
                f"Linear: {', '.join(values)} is constant in this space; a constraint needs a "
                f"Float or Int that varies."
            )
        return Linear(
            {name: a for name, a in self.coefficients.items() if name not in values},
            self.upper - sum(self.coefficients[name] * v for name, v in values.items()),
        )

    def check(self, parameters: Mapping[str, Parameter]) -> None:
        """Raise `ConfigError` unless it is about numeric parameters of this space."""
        for name in self.coefficients:
            if name not in parameters:
                raise ConfigError(
                    f"Linear: no parameter {name!r} that varies; choose from "
                    f"{', '.join(parameters)}."
                )
            if not isinstance(parameters[name], Numeric):
                raise ConfigError(
                    f"Linear: {name} is {parameters[name].kind}, but must be a Float or an Int."
                )
        numbers = [parameters[name] for name in self.coefficients]
        sizes = [max(map(abs, p.bounds)) for p in numbers if isinstance(p, Numeric)]
        size = sum(abs(a) * s for a, s in zip(self.coefficients.values(), sizes, strict=True))
        if not size + abs(self.upper) <= LARGEST:
            raise ConfigError(
                f"Linear: the terms of {self.to_dict()} reach {size:g}, but at most {LARGEST:g} is "
                f"supported. Divide the coefficients and upper by the same number."
            )

    @property
    def names(self) -> frozenset[str]:
        """The parameters it is about."""
        return frozenset(self.coefficients)

    def mask(self, values: Mapping[str, Any], n: int) -> np.ndarray:
        """Which of n configs, given as arrays of values by name, satisfy it: `n`, bool."""
        terms = np.array([a * values[name].astype(float) for name, a in self.coefficients.items()])
        slack = SLACK * (np.abs(terms).sum(0) + abs(self.upper))
        satisfied: np.ndarray = terms.sum(0) - self.upper - slack <= 0
        return satisfied

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        return {"coefficients": dict(self.coefficients), "upper": self.upper}


@dataclass(frozen=True)
class Allowed:
    """A constraint that is a function.

    function: takes a config and returns True if it is allowed.
    vectorized: True if the function instead takes a dict of arrays, with n values for each
        parameter that varies (NaN or None where it does not exist) and constants as they are, and
        returns an array of n bools. This is many times faster.
    """

    function: Callable[[dict[str, Any]], Any]
    vectorized: bool = False

    names: ClassVar[frozenset[str]] = frozenset()  # what it is about is not known

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(
                f"Allowed: expected a function of the config, not {shown(self.function)}."
            )
        if not isinstance(self.vectorized, bool):
            raise ConfigError(f"Allowed: vectorized must be a bool, not {shown(self.vectorized)}.")

    def allows(self, config: dict[str, Any]) -> bool:
        """Whether a function that is not vectorised allows a config."""
        result = self._call(config)
        if isinstance(result, bool | np.bool_):
            return bool(result)
        raise ConfigError(
            f"constraints: {in_words(self.function)}({config}) must return True or False, not "
            f"{shown(result)}."
        )

    def mask(self, values: dict[str, Any], n: int) -> np.ndarray:
        """Which of n configs a vectorised function allows: `n`, bool."""
        result = np.asarray(self._call(values))
        if result.shape == (n,) and result.dtype == np.bool_:
            return result
        raise ConfigError(
            f"constraints: {in_words(self.function)}, which is vectorized, must return an array of "
            f"{n} bools, not of {result.dtype} and shape {result.shape}."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; a function cannot be read again."""
        return {"function": in_words(self.function), "vectorized": self.vectorized}

    def _call(self, values: dict[str, Any]) -> Any:
        try:
            return self.function(values)
        except Exception as error:
            given = "arrays" if self.vectorized else shown(values)
            raise ConfigError(
                f"constraints: {in_words(self.function)}({given}) raised {error!r}."
            ) from error


Constraint = Linear | Expression | Allowed


def checked_constraints(space: "Space", given: Any) -> tuple[Constraint, ...]:
    """What was given as the constraints of a space, or a `ConfigError`."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError(
            f"constraints: expected a list of Linear(...), strings or functions, not "
            f"{shown(given)}."
        )
    return tuple(_checked(space, constraint) for constraint in given)


def _checked(space: "Space", constraint: Any) -> Constraint:
    if isinstance(constraint, Linear):
        lasting = {k: v for k, v in space.fixed.items() if k not in space.conditions}
        linear = constraint.given(lasting)
        linear.check(space.free)
        return linear
    if isinstance(constraint, str | Expression):
        text = constraint if isinstance(constraint, str) else constraint.text
        expression = Expression(text)
        middle = torch.full((1, space.d), 0.5, dtype=torch.float64)
        expression.check(_arrays(space, middle, space.parameters))
        return expression
    if isinstance(constraint, Allowed):
        return constraint
    if callable(constraint):
        return Allowed(constraint)
    raise ConfigError(
        f"constraints: expected Linear(...), a string or a function of the config, not "
        f"{shown(constraint)}."
    )


def holds(
    constraint: Constraint, space: "Space", X: Tensor, config: dict[str, Any] | None = None
) -> Tensor:
    """Where a constraint is satisfied, or about a parameter that is inactive: `n`, bool.

    X are points of configs, `n x d`. If it is the point of a config that is given, functions see
    the very values of that.
    """
    if not constraint.vectorized and isinstance(constraint, Allowed):
        configs = [space.decode(x) for x in X] if config is None else [dict(config)]
        return torch.tensor([constraint.allows(each) for each in configs])
    arrays = _arrays(space, X, constraint.names or space.parameters)
    for name, value in (config or {}).items():
        if isinstance(space.parameters[name], Numeric):
            arrays[name] = np.array([value])
    fine = torch.from_numpy(constraint.mask(arrays, len(X)).copy())
    for name, active in space.active(X).items():
        if name in constraint.names:
            fine |= ~active
    return fine


def _arrays(space: "Space", X: Tensor, names: Collection[str]) -> dict[str, Any]:
    """Values by name, `n` each, of points of configs; constants as they are."""
    active = space.active(X)
    arrays: dict[str, Any] = {name: v for name, v in space.fixed.items() if name in names}
    for name, parameter in space.free.items():
        if name not in names:
            continue
        arrays[name] = values = parameter.decode_all(X[:, space.places[name]])
        if name in active and not bool(active[name].all()):
            missing: Any = math.nan if isinstance(parameter, Numeric) else None
            dtype = float if isinstance(parameter, Numeric) else object
            arrays[name] = np.where(active[name].numpy(), values.astype(dtype), missing)
    return arrays


def row_in_cube(constraint: Linear, space: "Space") -> tuple[list[float], float] | None:
    """The row a, `d`, and b with a u <= b in the unit cube; None if it is not linear there.

    Divided by the largest coefficient, which solvers of linear programs need where it is far
    from 1.
    """
    row, offset = [0.0] * space.d, 0.0
    for name, coefficient in constraint.coefficients.items():
        parameter = space.free[name]
        if not isinstance(parameter, Numeric) or parameter.log or name in space.conditions:
            return None
        low, high = parameter.bounds
        row[space.places[name].start] = coefficient * (high - low)
        offset += coefficient * low
    size = max(map(abs, row)) or 1.0
    bound = (constraint.upper - offset) / size
    return [a / size for a in row], min(max(bound, -LARGEST), LARGEST)
