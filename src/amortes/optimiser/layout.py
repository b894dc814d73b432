"""Named parameters, and where their values lie in the unit cube.

A *config* is a dict with a value for every name that matters (see `conditions`). A *point* is its
place in the unit cube, d float64 coordinates in the order of the parameters; see `numeric` and
`choices` for where values lie. `decode` maps any point of the cube to the config whose region holds
it, `encode` a config to its own point, and `project` is one after the other, for many points at
once.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.domain import is_among
from amortes.errors import ConfigError, DataError, shown
from amortes.optimiser.choices import same
from amortes.optimiser.conditions import Condition, activity, check_conditions, flatten
from amortes.optimiser.description import checked_entry
from amortes.optimiser.parameter import Parameter

Config = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """Parameters and constants by name, and the conditions on which some of them depend."""

    parameters: Mapping[str, Any]
    conditions: Mapping[str, Condition] = field(default_factory=dict, kw_only=True)

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
                f"no parameter {', '.join(unknown)}; choose from {', '.join(self.parameters)}."
            )
        checked: Config = {}
        for name, parameter in self.parameters.items():
            if not self.is_active(name, checked):
                if name in config:
                    raise DataError(f"{name}: {self._why_inactive(name, checked)}; leave it out.")
                continue
            if name in self.fixed:
                if name in config and not same(config[name], parameter):
                    raise DataError(
                        f"{name}: is fixed at {parameter!r}, not {shown(config[name])}."
                    )
                checked[name] = parameter
                continue
            if name not in config:
                raise DataError(f"{name}: missing from the config {shown(dict(config))}.")
            try:
                checked[name] = self.free[name].check(config[name])
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
        return checked

    def is_active(self, name: str, config: Mapping[str, Any]) -> bool:
        """Whether a parameter matters, given the values of those before it that do."""
        condition = self.conditions.get(name)
        if condition is None:
            return True
        return condition.parent in config and condition.holds(config[condition.parent])

    def _why_inactive(self, name: str, config: Mapping[str, Any]) -> str:
        parent = self.conditions[name].parent
        if parent not in config:
            return f"does not matter, as {parent} does not"
        return f"does not matter where {parent} is {shown(config[parent])}"

    def activity(self, config: Mapping[str, Any]) -> dict[str, bool | None]:
        """Whether each parameter matters; None if that depends on values the config lacks."""
        return activity(self.parameters, self.conditions, config)

    def relevant(self, config: Mapping[str, Any]) -> Config:
        """The config, of which values may be missing, without those that do not matter."""
        active = self.activity(config)
        return {name: value for name, value in config.items() if active[name] is not False}

    def lacking(self, config: Mapping[str, Any]) -> list[str]:
        """Parameters that matter, or might, and have no value in the config."""
        active = self.activity(config)
        return [name for name in self.free if name not in config and active[name] is not False]

    def adapted(self, config: Mapping[str, Any]) -> Config:
        """The config without what does not matter, and with defaults for what it lacks."""
        adapted: Config = {}
        for name, parameter in self.parameters.items():
            if self.is_active(name, adapted):
                default = self._defaults[name] if name in self.free else parameter
                adapted[name] = config.get(name, default)
        return self.check(adapted)

    @cached_property
    def _defaults(self) -> Config:
        """The middles of the ranges, where inactive parameters have their coordinates."""
        return {name: p.decode([0.5] * p.dims) for name, p in self.free.items()}

    @cached_property
    def _default_codes(self) -> dict[str, list[float]]:
        return {name: self.free[name].encode(value) for name, value in self._defaults.items()}

    def encode(self, config: Mapping[str, Any]) -> Tensor:
        """The point of a config: `d`, float64."""
        return self.encode_all([config])[0]

    def encode_all(self, configs: Sequence[Mapping[str, Any]]) -> Tensor:
        """The points of n configs: `n x d`, float64."""
        points = [self.point_of(self.check(config)) for config in configs]
        return torch.tensor(points, dtype=torch.float64).reshape(len(points), self.d)

    def point_of(self, checked: Config) -> list[float]:
        """The coordinates of a checked config."""
        codes = [
            p.encode(checked[name]) if name in checked else self._default_codes[name]
            for name, p in self.free.items()
        ]
        return [u for code in codes for u in code]

    def coordinates(self, values: Mapping[str, Any]) -> dict[int, float]:
        """The coordinates, by number, of values of some of the parameters that vary."""
        return {
            self.places[name].start + i: min(max(u, 0.0), 1.0)  # rounding may leave the cube
            for name, value in values.items()
            for i, u in enumerate(self.free[name].encode(self.free[name].check(value)))
        }

    def decode(self, x: Tensor) -> Config:
        """The config whose region holds x, `d`."""
        if x.shape != (self.d,):
            raise DataError(f"a point of this space has shape ({self.d},), not {tuple(x.shape)}.")
        u: list[float] = x.tolist()
        if not all(map(math.isfinite, u)):
            raise DataError(f"a point must be finite, not {u}.")
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
                default = torch.tensor(self._default_codes[name], dtype=X.dtype)
                X[~active, self.places[name]] = default
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
