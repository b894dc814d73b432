"""Constraints that are known before anything is evaluated.

`Linear`; a text (`Expression`), which files can have; a function (`Allowed`), which they cannot.

    a_1 v_1 + ... + a_k v_k <= upper

The v are users' values, not coordinates. For parameters that are not logarithmic the constraint is
linear in the unit cube too, and `rows_in_cube` says how; on a logarithmic one it is curved there.
A constraint about parameters that may be inactive holds where all of them are active.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, shown
from amortes.optimiser.expression import Expression
from amortes.optimiser.numeric import Numeric, finite
from amortes.optimiser.parameter import Parameter, text

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

    def excess(self, values: Mapping[str, Tensor]) -> Tensor:
        """Left side less `upper` for values of any one shape: positive where violated."""
        terms = torch.stack([a * values[name] for name, a in self.coefficients.items()])
        slack = SLACK * (terms.abs().sum(0) + abs(self.upper))
        return terms.sum(0) - self.upper - slack

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
            f"constraints: {text(self.function)}({config}) must return True or False, not "
            f"{shown(result)}."
        )

    def mask(self, values: dict[str, Any], n: int) -> np.ndarray:
        """Which of n configs a vectorised function allows: `n`, bool."""
        result = np.asarray(self._call(values))
        if result.shape == (n,) and result.dtype == np.bool_:
            return result
        raise ConfigError(
            f"constraints: {text(self.function)}, which is vectorized, must return an array of "
            f"{n} bools, not of {result.dtype} and shape {result.shape}."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; a function cannot be read again."""
        return {"function": text(self.function), "vectorized": self.vectorized}

    def _call(self, values: dict[str, Any]) -> Any:
        try:
            return self.function(values)
        except Exception as error:
            given = "arrays" if self.vectorized else shown(values)
            raise ConfigError(
                f"constraints: {text(self.function)}({given}) raised {error!r}."
            ) from error


Constraint = Linear | Expression | Allowed


def rows_in_cube(
    constraints: list[Linear],
    parameters: Mapping[str, Parameter],
    places: Mapping[str, int],
    d: int,
) -> tuple[Tensor, Tensor]:
    """A, `m x d`, and b, `m`, with A u <= b in the unit cube: the constraints linear there.

    `places[name]` is the parameter's coordinate. Rows are divided by their largest coefficient,
    which solvers of linear programs need where it is far from 1.
    """
    A, b = torch.zeros(len(constraints), d, dtype=torch.float64), []
    for row, constraint in zip(A, constraints, strict=True):
        offset = 0.0
        for name, coefficient in constraint.coefficients.items():
            parameter = parameters[name]
            assert isinstance(parameter, Numeric)
            low, high = parameter.bounds
            row[places[name]] = coefficient * (high - low)
            offset += coefficient * low
        size = float(row.abs().max()) or 1.0
        row /= size
        b.append((constraint.upper - offset) / size)
    return A, torch.tensor(b, dtype=torch.float64).clamp(-LARGEST, LARGEST)
