"""A search space: named parameters, constants, linear constraints, or a finite pool.

    space = Space(
        {"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8), "width": Int(8, 64), "seed": 0},
        constraints=[Linear({"layers": 8.0, "width": 1.0}, upper=96.0)],
    )

A *config* is a dict with a value for every name. A *point* is its place in the unit cube, d float64
coordinates in the order of the parameters; see `numeric` and `choices` for where values lie.
`decode` maps any point of the cube to the config whose region holds it, `encode` a config to its
own point, and `project` is one after the other, for many points at once.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, DataError, shown
from amortes.optimiser.choices import Categorical, Ordinal
from amortes.optimiser.constraints import Linear, rows_in_cube
from amortes.optimiser.numeric import Float, Int, Numeric
from amortes.optimiser.parameter import Parameter, plain, same

Config = dict[str, Any]
# A space of at most this many configs is treated as a pool: scoring them all takes about as long
# as a search.
FEW = 1024
KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Float, Int, Ordinal, Categorical)}


@dataclass(frozen=True)
class Space:
    """Parameters and constants by name; constraints between them; or the only configs there are.

    A pool is a list of configs; those that violate a constraint are left out.
    """

    parameters: Mapping[str, Any]
    constraints: Sequence[Linear] = ()
    pool: Sequence[Mapping[str, Any]] | None = None
    _members: dict[tuple[float, ...], Config] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise ConfigError(
                f"space: expected a dict of parameters by name, not {shown(self.parameters)}."
            )
        entries = {name: _checked_entry(name, p) for name, p in self.parameters.items()}
        object.__setattr__(self, "parameters", entries)
        if not self.free:
            raise ConfigError(
                f"space: nothing varies in {shown(self.parameters)}; give at least one Float, Int, "
                f"Ordinal or Categorical."
            )
        constraints: Any = self.constraints
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise ConfigError(f"constraints: expected a list of Linear, not {shown(constraints)}.")
        for constraint in constraints:
            if not isinstance(constraint, Linear):
                raise ConfigError(f"constraints: expected Linear(...), not {shown(constraint)}.")
        constraints = tuple(constraint.given(self.fixed) for constraint in constraints)
        for constraint in constraints:
            constraint.check(self.free)
        object.__setattr__(self, "constraints", constraints)
        if self.pool is not None:
            self._admit(self.pool)

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
        X = torch.tensor([self._point(config) for config in configs], dtype=torch.float64)
        allowed = self.feasible(X.reshape(len(configs), self.d)).tolist()
        configs = list(itertools.compress(configs, allowed))
        if not configs:
            raise ConfigError("pool: has no config that satisfies the constraints.")
        for config in configs:
            self._members.setdefault(tuple(self._point(config)), config)
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
        return {
            name: slice(end - p.dims, end)
            for (name, p), end in zip(self.free.items(), ends, strict=True)
        }

    @property
    def d(self) -> int:
        """Number of coordinates of a point."""
        return sum(p.dims for p in self.free.values())

    def check(self, config: Mapping[str, Any]) -> Config:
        """The config with every value in its own type and constants added, or a `DataError`."""
        if not isinstance(config, Mapping):
            raise DataError(f"expected a config (a dict of values by name), not {shown(config)}.")
        if unknown := [str(name) for name in config if name not in self.parameters]:
            raise DataError(
                f"no parameter {', '.join(unknown)}; there are {', '.join(self.parameters)}."
            )
        checked = {}
        for name, parameter in self.parameters.items():
            if name in self.fixed:
                if name in config and not same(config[name], parameter):
                    raise DataError(
                        f"{name}: is fixed at {parameter!r}, not {shown(config[name])}."
                    )
                checked[name] = parameter
                continue
            if name not in config:
                raise DataError(f"{name}: the config {shown(dict(config))} has no value for it.")
            try:
                checked[name] = self.free[name].check(config[name])
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
        return checked

    def encode(self, config: Mapping[str, Any]) -> Tensor:
        """The point of a config: `d`, float64."""
        return self.encode_all([config])[0]

    def encode_all(self, configs: Sequence[Mapping[str, Any]]) -> Tensor:
        """The points of n configs: `n x d`, float64."""
        points = [self._point(self.check(config)) for config in configs]
        return torch.tensor(points, dtype=torch.float64).reshape(len(points), self.d)

    def _point(self, checked: Config) -> list[float]:
        return [u for name, p in self.free.items() for u in p.encode(checked[name])]

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
        if tuple(u) in self._members:
            return dict(self._members[tuple(u)])
        return {
            name: self.free[name].decode(u[self.places[name]]) if name in self.free else constant
            for name, constant in self.parameters.items()
        }

    def project(self, X: Tensor) -> Tensor:
        """The points, `n x d`, of the configs whose regions hold the rows of X."""
        return torch.cat([p.project(X[:, self.places[k]]) for k, p in self.free.items()], dim=1)

    def feasible(self, X: Tensor) -> Tensor:
        """Which of the points of configs, `n x d`, satisfy all constraints: `n`, bool."""
        allowed = torch.ones(len(X), dtype=torch.bool)
        values = {
            name: p.natural(X[:, self.places[name].start])
            for name, p in self.free.items()
            if isinstance(p, Numeric)
        }
        for constraint in self.constraints:
            allowed &= constraint.excess(values) <= 0
        return allowed

    def allows(self, config: Mapping[str, Any]) -> bool:
        """Whether a config is of the pool, if there is one, and satisfies all constraints."""
        point = self._point(self.check(config))
        if self.pool is not None:
            return tuple(point) in self._members
        return bool(self.feasible(torch.tensor([point], dtype=torch.float64)))

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """A, `m x d`, and b, `m`: the constraints that are linear in the cube, as A x <= b."""
        straight = [
            constraint
            for constraint in self.constraints
            if not any(self.parameters[name].log for name in constraint.coefficients)
        ]
        starts = {name: place.start for name, place in self.places.items()}
        return rows_in_cube(straight, self.free, starts, self.d)

    @cached_property
    def count(self) -> int | None:
        """Number of configs before constraints, or of distinct ones in the pool; None: no end."""
        if self.pool is not None:
            return len(self.pool_points)
        sizes = [p.cardinality for p in self.free.values()]
        return math.prod(s for s in sizes if s) if all(sizes) else None

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
        codes = [[p.encode(v) for v in p.values()] for p in self.free.values()]
        rows = [[u for code in codes for u in code] for codes in itertools.product(*codes)]
        X = torch.tensor(rows, dtype=torch.float64)
        X = X[self.feasible(X)]
        if len(X) == 0:
            raise ConfigError(
                f"constraints: none of the {self.count} configs of the space satisfies them."
            )
        return X

    def to_json(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A checked config as files have it; `from_json` inverts it."""
        return {k: self.free[k].to_json(v) if k in self.free else v for k, v in config.items()}

    def from_json(self, stored: Any) -> Config:
        """The checked config a file has, or a `DataError`."""
        if not isinstance(stored, Mapping):
            raise DataError(f"expected a config (a dict of values by name), not {shown(stored)}.")
        config = dict(stored)
        for name in config.keys() & self.free.keys():
            try:
                config[name] = self.free[name].from_json(config[name])
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
        return self.check(config)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `from_dict` inverts it."""
        return {
            "parameters": {
                name: p.to_dict() if isinstance(p, Parameter) else {"type": "fixed", "value": p}
                for name, p in self.parameters.items()
            },
            "constraints": [constraint.to_dict() for constraint in self.constraints],
            "pool": None if self.pool is None else [self.to_json(config) for config in self.pool],
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The space `to_dict` described; anything else is a `ConfigError`."""
        try:
            parameters = {k: _entry(k, p) for k, p in description["parameters"].items()}
            constraints = [Linear(**c) for c in description.get("constraints", ())]
            return cls(parameters, constraints, description.get("pool"))
        except (TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"space: not the description of a space: {error!r}.") from None


def _checked_entry(name: Any, entry: Any) -> Any:
    """A parameter, or a constant as Python's own; else a `ConfigError`."""
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"space: a parameter's name must be a non-empty string, not {shown(name)}."
        )
    if isinstance(entry, Parameter):
        return entry
    number = isinstance(entry, np.generic)
    if isinstance(entry, type) or not (number or isinstance(entry, str | int | float | None)):
        raise ConfigError(
            f"{name}: expected Float, Int, Ordinal, Categorical or a constant (a number, string, "
            f"bool or None), not {shown(entry)}."
        )
    return plain(entry, f"{name}: constant")


def _entry(name: str, description: Mapping[str, Any]) -> Any:
    """A parameter or constant from its description, which errors name."""
    if not isinstance(description, Mapping):
        raise ConfigError(f"{name}: expected the fields of a parameter, not {shown(description)}.")
    fields = dict(description)
    kind = fields.pop("type", None)
    if kind == "fixed":
        return fields["value"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{name}: type must be fixed, {', '.join(KINDS)}, not {shown(kind)}.")
    if "objects" in fields:
        raise ConfigError(
            f"{name}: its choices are not JSON, so the file has no more than their texts. Give the "
            f"same space again: `Optimizer.load(path, space=space)`."
        )
    try:
        return KINDS[kind](**fields)
    except (TypeError, ConfigError) as error:
        raise ConfigError(f"{name}: {error}") from None
