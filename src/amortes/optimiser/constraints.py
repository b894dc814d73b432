"""Linear constraints between numeric parameters: a_1 v_1 + ... + a_k v_k <= upper.

The v are users' values, not coordinates. For parameters that are not logarithmic the constraint is
linear in the unit cube too, and `rows_in_cube` says how; on a logarithmic one it is curved there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.optimiser.numeric import Numeric, finite
from amortes.optimiser.parameter import Parameter

LARGEST = 1e100
"""Terms beyond this are refused: they would overflow on the way."""
# Relative to the sizes of the terms: what decoding a point on the boundary may be off by.
SLACK = 1e-9


@dataclass(frozen=True)
class Linear:
    """sum of coefficients[name] * value of name <= upper; negate both sides for >=."""

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
                f"Linear: {', '.join(values)} is a constant of this space; a constraint needs a "
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
                    f"Linear: no parameter {name!r} that varies; there are {', '.join(parameters)}."
                )
            if not isinstance(parameters[name], Numeric):
                raise ConfigError(
                    f"Linear: {name} is {parameters[name].kind}; constraints are for Float and Int."
                )
        numbers = [parameters[name] for name in self.coefficients]
        sizes = [max(map(abs, p.bounds)) for p in numbers if isinstance(p, Numeric)]
        size = sum(abs(a) * s for a, s in zip(self.coefficients.values(), sizes, strict=True))
        if not size + abs(self.upper) <= LARGEST:
            raise ConfigError(
                f"Linear: the terms of {self.to_dict()} are up to {size:g}; at most {LARGEST:g} is "
                f"supported. Divide the coefficients and upper by the same number."
            )

    def excess(self, values: Mapping[str, Tensor]) -> Tensor:
        """Left side less `upper` for values of any one shape: positive where violated."""
        terms = torch.stack([a * values[name] for name, a in self.coefficients.items()])
        slack = SLACK * (terms.abs().sum(0) + abs(self.upper))
        return terms.sum(0) - self.upper - slack

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        return {"coefficients": dict(self.coefficients), "upper": self.upper}


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
