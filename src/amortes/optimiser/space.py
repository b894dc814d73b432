"""A search space: named parameters, constants, constraints, or a finite pool.

    space = Space(
        {"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8), "width": Int(8, 64), "seed": 0},
        constraints=[Linear({"layers": 8.0, "width": 1.0}, upper=96.0)],
    )

`layout` says where configs lie in the unit cube.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from amortes.acquisition import Domain
from amortes.errors import ConfigError, DataError, shown
from amortes.optimiser.conditions import count
from amortes.optimiser.constraints import Allowed, Constraint, Linear, rows_in_cube
from amortes.optimiser.description import describe, parsed
from amortes.optimiser.expression import Expression
from amortes.optimiser.layout import Config, Layout
from amortes.optimiser.numeric import Numeric

__all__ = ["FEW", "Config", "Space"]

# A space of at most this many configs is treated as a pool: scoring them all takes about as long
# as a search.
FEW = 1024


@dataclass(frozen=True)
class Space(Layout):
    """A search space: parameters and, optionally, constraints between them or a pool of configs.

    parameters: parameters and constants by name.
    constraints: a list of `Linear` constraints, expressions such as "layers * width <= 512", and
        functions (or `Allowed`) that take a config and return whether it is allowed.
    pool: a list of the only configs that exist. Those that violate a constraint are left out.
    conditions: which parameters exist only for some choices. Made from the branches of a
        `Categorical`; you need not pass it.
    """

    constraints: Sequence[Constraint | str | Callable[[Config], bool]] = ()
    pool: Sequence[Mapping[str, Any]] | None = None
    _members: dict[tuple[float, ...], Config] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "constraints", self._checked_constraints())
        if self.pool is not None:
            self._admit(self.pool)

    def _checked_constraints(self) -> tuple[Constraint, ...]:
        constraints: Any = self.constraints
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise ConfigError(
                f"constraints: expected a list of Linear(...), strings or functions, not "
                f"{shown(constraints)}."
            )
        checked: list[Constraint] = []
        for constraint in constraints:
            if isinstance(constraint, Linear):
                lasting = {k: v for k, v in self.fixed.items() if k not in self.conditions}
                linear = constraint.given(lasting)
                linear.check(self.free)
                checked.append(linear)
            elif isinstance(constraint, str | Expression):
                text = constraint if isinstance(constraint, str) else constraint.text
                expression = Expression(text)
                expression.check(self._arrays(torch.full((1, self.d), 0.5, dtype=torch.float64)))
                checked.append(expression)
            elif isinstance(constraint, Allowed) or callable(constraint):
                is_function = not isinstance(constraint, Allowed)
                checked.append(Allowed(constraint) if is_function else constraint)
            else:
                raise ConfigError(
                    f"constraints: expected Linear(...), a string or a function of the config, not "
                    f"{shown(constraint)}."
                )
        return tuple(checked)

    def _admit(self, pool: Any) -> None:
        """Check the pool and keep its configs by their points, the first of equals."""
        if isinstance(pool, str | bytes | Mapping) or not isinstance(pool, Sequence):
            raise ConfigError(f"pool: expected a list of configs, not {shown(pool)}.")
        configs = []
        for i, config in enumerate(pool):
            try:
                configs.append(self.check(config))
            except DataError as error:
                raise ConfigError(f"pool[{i}]: {error}") from None
        configs = [config for config in configs if self._satisfies(config)]
        if not configs:
            raise ConfigError("pool: none of its configs satisfies the constraints.")
        for config in configs:
            self._members.setdefault(tuple(self.point_of(config)), config)
        object.__setattr__(self, "pool", tuple(configs))

    def decode(self, x: Tensor) -> Config:
        """The config whose region holds x, `d`; a point of the pool gives its very config."""
        member = self._members.get(tuple(x.tolist())) if x.ndim == 1 else None
        return super().decode(x) if member is None else dict(member)

    def feasible(self, X: Tensor) -> Tensor:
        """Which of the points of configs, `n x d`, satisfy all constraints: `n`, bool."""
        X = X.detach()
        allowed = self._within(X)
        for constraint in self.functions:
            index = allowed.nonzero().flatten()
            if not len(index):
                break
            if isinstance(constraint, Allowed) and not constraint.vectorized:
                fine = torch.tensor([constraint.allows(self.decode(x)) for x in X[index]])
            else:
                mask = constraint.mask(self._arrays(X[index]), len(index))
                fine = self._or_inactive(torch.from_numpy(mask.copy()), constraint, X[index])
            allowed[index] = fine
        return allowed

    @cached_property
    def functions(self) -> list[Expression | Allowed]:
        """The constraints that are texts or functions."""
        return [c for c in self.constraints if isinstance(c, Expression | Allowed)]

    @cached_property
    def _linear(self) -> list[Linear]:
        return [c for c in self.constraints if isinstance(c, Linear)]

    def _within(self, X: Tensor) -> Tensor:
        """Which of the points of configs, `n x d`, satisfy the linear constraints: `n`, bool."""
        allowed = torch.ones(len(X), dtype=torch.bool)
        if not self._linear:
            return allowed
        values = {
            name: p.natural(X[:, self.places[name].start])
            for name, p in self.free.items()
            if isinstance(p, Numeric)
        }
        for constraint in self._linear:
            allowed &= self._or_inactive(constraint.excess(values) <= 0, constraint, X)
        return allowed

    def _or_inactive(self, fine: Tensor, constraint: Constraint, X: Tensor) -> Tensor:
        """Where a constraint is satisfied, or about a parameter that is inactive: `n`, bool."""
        if isinstance(constraint, Allowed) or not constraint.names & self.conditions.keys():
            return fine
        for name, active in self.active(X).items():
            if name in constraint.names:
                fine = fine | ~active
        return fine

    def _arrays(self, X: Tensor) -> dict[str, Any]:
        """Values by name, `n` each, of points of configs; constants as they are."""
        active = self.active(X)
        arrays: dict[str, Any] = dict(self.fixed)
        for name, parameter in self.free.items():
            arrays[name] = values = parameter.decode_all(X[:, self.places[name]])
            if name in active and not bool(active[name].all()):
                missing: Any = math.nan if isinstance(parameter, Numeric) else None
                dtype = float if isinstance(parameter, Numeric) else object
                arrays[name] = np.where(active[name].numpy(), values.astype(dtype), missing)
        return arrays

    def _satisfies(self, checked: Config) -> bool:
        """Whether a config satisfies all constraints; functions see its very values."""
        X = torch.tensor([self.point_of(checked)], dtype=torch.float64)
        if not bool(self._within(X)):
            return False
        for constraint in self.functions:
            if isinstance(constraint, Allowed) and not constraint.vectorized:
                fine = constraint.allows(dict(checked))
            else:
                arrays = self._arrays(X)
                numbers = [k for k in checked if isinstance(self.parameters[k], Numeric)]
                arrays.update({name: np.array([checked[name]]) for name in numbers})
                mask = torch.from_numpy(constraint.mask(arrays, 1).copy())
                fine = bool(self._or_inactive(mask, constraint, X))
            if not fine:
                return False
        return True

    def allows(self, config: Mapping[str, Any]) -> bool:
        """Return whether a config satisfies all constraints and, if there is a pool, is in it."""
        checked = self.check(config)
        if self.pool is not None:
            return tuple(self.point_of(checked)) in self._members
        return self._satisfies(checked)

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """A, `m x d`, and b, `m`: the constraints that are linear in the cube, as A x <= b."""
        straight = [
            constraint
            for constraint in self._linear
            if not any(
                self.parameters[name].log or name in self.conditions
                for name in constraint.coefficients
            )
        ]
        starts = {name: place.start for name, place in self.places.items()}
        return rows_in_cube(straight, self.free, starts, self.d)

    def domain(self, fixed: Mapping[int, float] | None = None) -> Domain:
        """The space as a search sees it, with some coordinates fixed, by number."""
        A, b = self.rows
        discrete = any(p.cardinality is not None for p in self.free.values())
        return Domain.cube(
            self.d,
            fixed=fixed,
            A=A if len(A) else None,
            b=b if len(b) else None,
            project=self.project if discrete else None,
        )

    @cached_property
    def count(self) -> int | None:
        """Number of configs before constraints, or of distinct ones in the pool; None: no end."""
        if self.pool is not None:
            return len(self.pool_points)
        return count(self.free, {k: c for k, c in self.conditions.items() if k in self.free})

    @cached_property
    def pool_points(self) -> Tensor:
        """The distinct points of the pool, in its order: `m x d`."""
        return torch.tensor(list(self._members), dtype=torch.float64)

    @cached_property
    def points(self) -> Tensor | None:
        """All points there are, `m x d`, if they are few: the pool's, or at most `FEW`."""
        if self.pool is not None:
            return self.pool_points
        if self.count is None or self.count > FEW:
            return None
        configs: list[Config] = [{}]
        for name, parameter in self.free.items():
            configs = [
                more
                for config in configs
                for more in (
                    [{**config, name: value} for value in parameter.values()]
                    if self.is_active(name, config)
                    else [config]
                )
            ]
        X = torch.tensor([self.point_of(config) for config in configs], dtype=torch.float64)
        X = X[self.feasible(X)]
        if len(X) == 0:
            raise ConfigError(
                f"constraints: none of the {self.count} configs of the space satisfies them."
            )
        return X

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `from_dict` inverts it."""
        parameters, conditions = describe(self.parameters, self.conditions)
        return {
            "parameters": parameters,
            "constraints": [c.to_dict() for c in self.constraints if isinstance(c, Constraint)],
            "pool": None if self.pool is None else [self.to_json(config) for config in self.pool],
        } | ({"conditions": conditions} if conditions else {})

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The space `to_dict` described; anything else is a `ConfigError`."""
        return cls(**parsed(description))
