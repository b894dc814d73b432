"""A search space: named parameters, constants, constraints, or a finite pool.

    space = Space(
        {"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8), "width": Int(8, 64), "seed": 0},
        constraints=[Linear({"layers": 8.0, "width": 1.0}, upper=96.0)],
    )

A *config* is a dict with a value for every name that matters (see `conditions`). A *point* is its
place in the unit cube, d float64 coordinates in the order of the parameters; see `numeric` and
`choices` for where values lie. `decode` maps any point of the cube to the config whose region holds
it, `encode` a config to its own point, and `project` is one after the other, for many points at
once.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from amortes.acquisition import Domain
from amortes.acquisition.domain import is_among
from amortes.errors import ConfigError, DataError, about, shown
from amortes.optimiser.choices import Parameter, same
from amortes.optimiser.conditions import Condition, activity, check_conditions, flatten
from amortes.optimiser.constraints import (
    Allowed,
    Constraint,
    Linear,
    checked_constraints,
    holds,
    row_in_cube,
)
from amortes.optimiser.description import checked_entry, describe, parsed
from amortes.optimiser.expression import Expression

Config = dict[str, Any]

# A space of at most this many configs is treated as a pool: scoring them all takes about as long
# as a search.
FEW = 1024


@dataclass(frozen=True)
class Space:
    """A search space: parameters and, optionally, constraints between them or a pool of configs.

    parameters: parameters and constants by name.
    constraints: a list of `Linear` constraints, expressions such as "layers * width <= 512", and
        functions (or `Allowed`) that take a config and return whether it is allowed.
    pool: a list of the only configs that exist. Those that violate a constraint are left out.
    conditions: which parameters exist only for some choices. Made from the branches of a
        `Categorical`; you need not pass it.
    """

    parameters: Mapping[str, Any]
    constraints: Sequence[Constraint | str | Callable[[Config], bool]] = ()
    pool: Sequence[Mapping[str, Any]] | None = None
    conditions: Mapping[str, Condition] = field(default_factory=dict, kw_only=True)
    _members: dict[tuple[float, ...], Config] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise ConfigError(
                f"space: expected a dict of parameters by name, not {shown(self.parameters)}."
            )
        entries, conditions = flatten(self.parameters)
        entries = {name: checked_entry(name, entry) for name, entry in entries.items()}
        object.__setattr__(self, "parameters", entries)
        if not self.free:
            raise ConfigError(
                f"space: nothing varies in {shown(self.parameters)}; give at least one Float, Int, "
                f"Ordinal or Categorical."
            )
        conditions |= check_conditions(self.conditions, entries)
        ordered = {name: conditions[name] for name in entries if name in conditions}
        object.__setattr__(self, "conditions", ordered)
        object.__setattr__(self, "constraints", checked_constraints(self, self.constraints))
        if self.pool is not None:
            self._admit(self.pool)

    def _admit(self, pool: Any) -> None:
        """Check the pool and keep its configs by their points, the first of equals."""
        if isinstance(pool, str | bytes | Mapping) or not isinstance(pool, Sequence):
            raise ConfigError(f"pool: expected a list of configs, not {shown(pool)}.")
        configs = []
        for i, config in enumerate(pool):
            with about(f"pool[{i}]:", ConfigError):
                configs.append(self.check(config))
        configs = [config for config in configs if self._satisfies(config)]
        if not configs:
            raise ConfigError("pool: none of its configs satisfies the constraints.")
        for config in configs:
            self._members.setdefault(tuple(self.point_of(config)), config)
        object.__setattr__(self, "pool", tuple(configs))

    @cached_property
    def free(self) -> dict[str, Parameter]:
        """The parameters that vary."""
        return {k: p for k, p in self.parameters.items() if isinstance(p, Parameter)}

    @cached_property
    def fixed(self) -> Config:
        """The constants."""
        return {k: v for k, v in self.parameters.items() if not isinstance(v, Parameter)}

    @cached_property
    def places(self) -> dict[str, slice]:
        """The coordinates of each parameter that varies."""
        ends = itertools.accumulate(p.dims for p in self.free.values())
        named = zip(self.free.items(), ends, strict=True)
        return {name: slice(end - p.dims, end) for (name, p), end in named}

    @cached_property
    def d(self) -> int:
        """Number of coordinates of a point."""
        return sum(p.dims for p in self.free.values())

    def check(self, config: Mapping[str, Any]) -> Config:
        """The config with every value in its own type and constants added, or a `DataError`."""
        if not isinstance(config, Mapping):
            raise DataError(f"expected a config (a dict of values by name), not {shown(config)}.")
        if unknown := [str(name) for name in config if name not in self.parameters]:
            raise DataError(
                f"no parameter {', '.join(unknown)}; choose from {', '.join(self.parameters)}."
            )
        checked: Config = {}
        for name, entry in self.parameters.items():
            if not self.is_active(name, checked):
                if name in config:
                    parent = self.conditions[name].parent
                    known = parent in checked
                    why = f" where {parent} is {shown(checked[parent])}" if known else ""
                    why = why or f", as {parent} does not"
                    raise DataError(f"{name}: does not matter{why}; leave it out.")
            elif name in self.fixed:
                if name in config and not same(config[name], entry):
                    raise DataError(f"{name}: is fixed at {entry!r}, not {shown(config[name])}.")
                checked[name] = entry
            elif name not in config:
                raise DataError(f"{name}: missing from the config {shown(dict(config))}.")
            else:
                checked[name] = _named(name, entry.check, config[name])
        return checked

    def is_active(self, name: str, config: Mapping[str, Any]) -> bool:
        """Whether a parameter matters, given the values of those before it that do."""
        condition = self.conditions.get(name)
        if condition is None:
            return True
        return condition.parent in config and condition.holds(config[condition.parent])

    def relevant(self, config: Mapping[str, Any]) -> Config:
        """The config, of which values may be missing, without those that do not matter."""
        active = activity(self.parameters, self.conditions, config)
        return {name: value for name, value in config.items() if active[name] is not False}

    def lacking(self, config: Mapping[str, Any]) -> list[str]:
        """Parameters that matter, or might, and have no value in the config."""
        active = activity(self.parameters, self.conditions, config)
        return [name for name in self.free if name not in config and active[name] is not False]

    def adapted(self, config: Mapping[str, Any]) -> Config:
        """The config without what does not matter, and with defaults for what it lacks."""
        adapted: Config = {}
        for name, default in {**self.parameters, **self._defaults}.items():
            if self.is_active(name, adapted):
                adapted[name] = config.get(name, default)
        return self.check(adapted)

    @cached_property
    def _defaults(self) -> Config:
        """The middles of the ranges, where inactive parameters have their coordinates."""
        return {name: p.decode([0.5] * p.dims) for name, p in self.free.items()}

    def encode(self, config: Mapping[str, Any]) -> Tensor:
        """The point of a config: `d`, float64."""
        return self.encode_all([config])[0]

    def encode_all(self, configs: Sequence[Mapping[str, Any]]) -> Tensor:
        """The points of n configs: `n x d`, float64."""
        points = [self.point_of(self.check(config)) for config in configs]
        return torch.tensor(points, dtype=torch.float64).reshape(len(points), self.d)

    def point_of(self, checked: Config) -> list[float]:
        """The coordinates of a checked config."""
        values = self._defaults | checked if self.conditions else checked
        return [u for name, p in self.free.items() for u in p.encode(values[name])]

    def coordinates(self, values: Mapping[str, Any]) -> dict[int, float]:
        """The coordinates, by number, of values of some of the parameters that vary."""
        return {
            self.places[name].start + i: min(max(u, 0.0), 1.0)  # rounding may leave the cube
            for name, value in values.items()
            for i, u in enumerate(self.free[name].encode(self.free[name].check(value)))
        }

    def decode(self, x: Tensor) -> Config:
        """The config whose region holds x, `d`; a point of the pool gives its very config."""
        if x.shape != (self.d,):
            raise DataError(f"a point of this space has shape ({self.d},), not {tuple(x.shape)}.")
        u: list[float] = x.tolist()
        if not all(map(math.isfinite, u)):
            raise DataError(f"a point must be finite, not {u}.")
        if member := self._members.get(tuple(u)):
            return dict(member)
        config: Config = {}
        for name, entry in self.parameters.items():
            if self.is_active(name, config):
                is_free = isinstance(entry, Parameter)
                config[name] = entry.decode(u[self.places[name]]) if is_free else entry
        return config

    def project(self, X: Tensor) -> Tensor:
        """The points, `n x d`, of the configs whose regions hold the rows of X."""
        X = torch.cat([p.project(X[:, self.places[k]]) for k, p in self.free.items()], dim=1)
        for name, active in self.active(X).items():
            if name in self.free:
                default = self.free[name].encode(self._defaults[name])
                X[~active, self.places[name]] = torch.tensor(default, dtype=X.dtype)
        return X

    def active(self, X: Tensor) -> dict[str, Tensor]:
        """Where, in points of configs `n x d`, parameters with a condition are active: `n` each."""
        active: dict[str, Tensor] = {}
        for name, condition in self.conditions.items():
            parent = self.free[condition.parent]
            codes = torch.tensor([parent.encode(v) for v in condition.values], dtype=X.dtype)
            active[name] = is_among(X[:, self.places[condition.parent]], codes)
            if condition.parent in active:
                active[name] &= active[condition.parent]
        return active

    @cached_property
    def functions(self) -> list[Expression | Allowed]:
        """The constraints that are texts or functions."""
        return [c for c in self.constraints if isinstance(c, Expression | Allowed)]

    @cached_property
    def linear(self) -> list[Linear]:
        """The constraints that are linear. They come first: functions see only what they allow."""
        return [c for c in self.constraints if isinstance(c, Linear)]

    def feasible(self, X: Tensor) -> Tensor:
        """Which of the points of configs, `n x d`, satisfy all constraints: `n`, bool."""
        X = X.detach()
        allowed = torch.ones(len(X), dtype=torch.bool)
        for constraint in (*self.linear, *self.functions):
            index = allowed.nonzero().flatten()
            if len(index):
                allowed[index] = holds(constraint, self, X[index])
        return allowed

    def _satisfies(self, checked: Config) -> bool:
        """Whether a config satisfies all constraints; functions see its very values."""
        X = torch.tensor([self.point_of(checked)], dtype=torch.float64)
        constraints = (*self.linear, *self.functions)
        return all(bool(holds(constraint, self, X, checked)) for constraint in constraints)

    def allows(self, config: Mapping[str, Any]) -> bool:
        """Return whether a config satisfies all constraints and, if there is a pool, is in it."""
        checked = self.check(config)
        if self.pool is not None:
            return tuple(self.point_of(checked)) in self._members
        return self._satisfies(checked)

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """A, `m x d`, and b, `m`: the constraints that are linear in the cube, as A x <= b."""
        rows = [row for constraint in self.linear if (row := row_in_cube(constraint, self))]
        A = torch.tensor([row for row, _ in rows], dtype=torch.float64).reshape(-1, self.d)
        return A, torch.tensor([bound for _, bound in rows], dtype=torch.float64)

    def domain(self, fixed: Mapping[int, float] | None = None) -> Domain:
        """The space as a search sees it, with some coordinates fixed, by number."""
        A, b = self.rows
        discrete = any(p.cardinality is not None for p in self.free.values())
        return Domain.cube(
            self.d,
            fixed=fixed,
            A=A if len(A) else None,
            b=b if len(A) else None,
            project=self.project if discrete else None,
        )

    @cached_property
    def points(self) -> Tensor | None:
        """All points there are, `m x d`, if they are few: the pool's, or at most `FEW`."""
        if self.pool is not None:
            return torch.tensor(list(self._members), dtype=torch.float64)
        configs: list[Config] = [{}]
        for name, parameter in self.free.items():
            active = sum(self.is_active(name, config) for config in configs)
            most = parameter.cardinality or FEW + 1
            if active * most + len(configs) - active > FEW:
                return None
            more = []
            for config in configs:
                values = parameter.values() if self.is_active(name, config) else []
                more += [{**config, name: value} for value in values] or [config]
            configs = more
        X = torch.tensor([self.point_of(config) for config in configs], dtype=torch.float64)
        X = X[self.feasible(X)]
        if len(X) == 0:
            raise ConfigError(
                f"constraints: none of the {len(configs)} configs of the space satisfies them."
            )
        return X

    def to_json(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A checked config as files have it; `from_json` inverts it."""
        return {k: self.free[k].to_json(v) if k in self.free else v for k, v in config.items()}

    def from_json(self, stored: Any) -> Config:
        """The checked config a file has, or a `DataError`."""
        if not isinstance(stored, Mapping):
            return self.check(stored)
        return self.check(
            {
                name: _named(name, self.free[name].from_json, value) if name in self.free else value
                for name, value in stored.items()
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `from_dict` inverts it."""
        return describe(self)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The space `to_dict` described; anything else is a `ConfigError`."""
        return cls(**parsed(description))


def _named(name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """The checked value; a `DataError` names the parameter."""
    try:
        return check(value)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
