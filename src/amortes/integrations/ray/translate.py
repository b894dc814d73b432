"""A search space of Ray Tune as one of ours.

    uniform, loguniform             Float
    quniform                        Float with a step
    randint, lograndint             Int, without the upper bound
    qrandint                        Int with a step, with the upper bound
    qloguniform, qlograndint        Float or Int with log=True, rounded to multiples of q
    choice                          Ordinal of numbers, sorted; else Categorical

Parameters of amortes may be among them, and dicts in dicts: what is at config["a"]["b"] is named
a/b. Everything else is a constant, which Tune adds to configs by itself.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

from ray.tune.search import sample

from amortes.errors import ConfigError, DataError, shown
from amortes.optimiser import Categorical, Float, Int, Ordinal, Space
from amortes.optimiser.choices import Parameter, identity
from amortes.optimiser.space import Config
from amortes.optimiser.text import is_plain

Path = tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """A space, and where in a config of Tune its parameters are.

    paths: by the names of the space.
    multiples: what values are rounded to multiples of, by the names of the space.
    constants: what else to put into configs.
    """

    space: Space
    paths: Mapping[str, Path]
    multiples: Mapping[str, float] = field(default_factory=dict)
    constants: Mapping[Path, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any, *, constants: bool) -> Self:
        """That of a space of Tune, or of one of ours; else a `ConfigError`.

        Constants are put into configs if asked for: Tune does so with those of a `Tuner`.
        """
        if isinstance(given, Space):
            return cls(given, {name: (name,) for name in given.parameters})
        if not isinstance(given, Mapping):
            raise ConfigError(f"space: expected a dict of parameters, not {shown(given)}.")
        parameters: dict[str, Parameter] = {}
        paths: dict[str, Path] = {}
        multiples: dict[str, float] = {}
        fixed: dict[Path, Any] = {}
        for path, value in _leaves(given):
            name = "/".join(path)
            if isinstance(value, sample.Categorical) and len(value.categories) == 1:
                fixed[path] = value.categories[0]
                continue
            if isinstance(value, sample.Domain):
                value, multiple = _parameter(name, value)
                if multiple is not None:
                    multiples[name] = multiple
            if not isinstance(value, Parameter):
                if constants:
                    fixed[path] = value
                continue
            if name in parameters:
                raise ConfigError(f"{name}: two parameters have that name; rename one of them.")
            parameters[name], paths[name] = value, path
        return cls(Space(parameters), paths, multiples, fixed)

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-ready description without the space; None if there are constants that are not."""
        if not all(map(is_plain, self.constants.values())):
            return None
        return {
            "paths": {name: list(path) for name, path in self.paths.items()},
            "multiples": dict(self.multiples),
            "constants": [[list(path), value] for path, value in self.constants.items()],
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], space: Space) -> Self:
        """What `to_dict` described, of the same space; else a `ConfigError`."""
        try:
            paths = {name: tuple(path) for name, path in description["paths"].items()}
            constants = {tuple(path): value for path, value in description["constants"]}
            return cls(space, paths, dict(description["multiples"]), constants)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ConfigError(f"not the description of a space of Tune: {error!r}.") from None

    def config(self, config: Config) -> dict[str, Any]:
        """What to put into a config of Tune."""
        values = dict(self.constants)
        for name, value in config.items():
            rounded = _rounded(value, self.multiples[name]) if name in self.multiples else value
            values[self.paths.get(name, (name,))] = rounded
        nested: dict[str, Any] = {}
        for (*parents, leaf), value in values.items():
            place = nested
            for parent in parents:
                place = place.setdefault(parent, {})
            place[leaf] = value
        return nested

    def read(self, config: Mapping[str, Any]) -> Config:
        """What varies in a whole config of Tune, its constants included; or a `DataError`."""
        found = {}
        for name in self.space.parameters:
            value: Any = config
            try:
                for key in self.paths.get(name, (name,)):
                    value = value[key]
            except (KeyError, TypeError):
                continue  # said below, unless it depends on another parameter
            parameter = self.space.free.get(name)
            if name in self.multiples and isinstance(parameter, Float | Int):
                value = min(max(value, parameter.low), parameter.high)  # rounding left the range
            found[name] = value
        if not found:
            raise DataError(f"expected a config of Tune, not {shown(config)}.")
        return self.space.check(found)


def _leaves(given: Mapping[str, Any], path: Path = ()) -> list[tuple[Path, Any]]:
    leaves: list[tuple[Path, Any]] = []
    for name, value in given.items():
        if isinstance(value, Mapping) and "grid_search" not in value:
            leaves += _leaves(value, (*path, name))
        elif isinstance(value, Mapping):
            raise ConfigError(
                f"{'/'.join((*path, name))}: a search does not go through a grid; use tune.choice, "
                f"or Tune without a search_alg."
            )
        else:
            leaves.append(((*path, name), value))
    return leaves


def _parameter(name: str, domain: Any) -> tuple[Parameter, float | None]:
    """A parameter, and what its values are rounded to multiples of, if they are."""
    sampler, multiple = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, multiple = sampler.get_sampler(), sampler.q
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical):
        return _choices(domain.categories), None
    if isinstance(domain, sample.Float | sample.Integer) and (
        log or isinstance(sampler, sample.Uniform)
    ):
        kind = Float if isinstance(domain, sample.Float) else Int
        low, high = domain.lower, domain.upper
        if multiple is None:
            return kind(low, high - 1 if kind is Int else high, log=log), None
        low, high = (
            _rounded(math.ceil(low / multiple - 1e-9) * multiple, multiple),
            _rounded(math.floor(high / multiple + 1e-9) * multiple, multiple),
        )
        if log:
            return kind(max(low, multiple), high, log=True), multiple
        return kind(low, high, step=multiple), None
    raise ConfigError(
        f"{name}: {shown(domain)} with {type(sampler).__name__} has no bounds that could be "
        f"searched; give tune.uniform, loguniform, randint or choice."
    )


def _choices(categories: Any) -> Parameter:
    try:
        distinct = list({identity(value): value for value in categories}.values())
    except TypeError:
        distinct = list(categories)  # Categorical says what is wrong
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct):
        return Ordinal(sorted(distinct))
    return Categorical(distinct)


def _rounded(value: Any, multiple: float) -> Any:
    """The nearest multiple; in decimals, so that three times 0.1 is 0.3."""
    count = round(value / multiple)
    if isinstance(value, int) and isinstance(multiple, int):
        return count * multiple
    return float(count * Decimal(repr(multiple)))
