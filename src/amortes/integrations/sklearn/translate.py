"""What `RandomizedSearchCV` takes as `param_distributions`, as a space.

    Float, Int, Ordinal, Categorical    themselves
    uniform, loguniform, randint        of scipy.stats: the Float or Int with their support
    a list of numbers                   an Ordinal of them, sorted
    any other list                      a Categorical; of one value, a constant
    a list of dicts                     one branch each of a parameter that says which

A `Space` may have constraints, too. Values of lists stand in the space by their places, so that
they may be anything: estimators, arrays, functions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from amortes.errors import ConfigError, shown
from amortes.optimiser import Categorical, Float, Int, Ordinal, Space
from amortes.optimiser.choices import Parameter
from amortes.optimiser.space import Config

BRANCH = "param_distributions"  # the parameter that says which of several dicts a config is of


@dataclass(frozen=True)
class Translation:
    """A space, and what its parameters are to an estimator.

    space: None if nothing varies.
    names: of the estimator's parameters, by those of the space where they differ.
    lists: the values that places stand for, by names of the space.
    """

    space: Space | None
    names: Mapping[str, str]
    lists: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, distributions: Any) -> Self:
        """That of a dict, a list of dicts, or a space; else a `ConfigError`."""
        if isinstance(distributions, Space):
            return cls(distributions, {}, {})
        if isinstance(distributions, Mapping):
            distributions = [distributions]
        if (
            isinstance(distributions, str)
            or not isinstance(distributions, Sequence)
            or not distributions
            or not all(isinstance(table, Mapping) for table in distributions)
        ):
            raise ConfigError(
                f"param_distributions: expected a dict of distributions by name, a list of such "
                f"dicts or a Space, not {shown(distributions)}."
            )
        names: dict[str, str] = {}
        lists: dict[str, Sequence[Any]] = {}
        tables: dict[int, dict[str, Any]] = {}
        for i, table in enumerate(distributions):
            tables[i] = {}
            for name, given in table.items():
                own = name if len(distributions) == 1 else f"{i}: {name}"
                names[own] = name
                tables[i][own], values = _parameter(name, given)
                if values is not None:
                    lists[own] = values
        flat = tables[0] if len(tables) == 1 else {BRANCH: Categorical(tables)}
        varies = any(isinstance(entry, Parameter) for entry in flat.values())
        return cls(Space(flat) if varies else None, names, lists)

    def parameters(self, config: Config) -> dict[str, Any]:
        """What to set in the estimator."""
        return {
            self.names.get(name, name): self.lists[name][value] if name in self.lists else value
            for name, value in config.items()
            if name != BRANCH
        }

    @property
    def constants(self) -> dict[str, Any]:
        """What to set in the estimator if nothing varies."""
        return self.parameters(dict.fromkeys(self.lists, 0))


def _parameter(name: str, given: Any) -> tuple[Any, Sequence[Any] | None]:
    """A parameter of a space, or a place; and the values that places stand for, if they do."""
    if isinstance(given, Parameter):
        return given, None
    if hasattr(given, "rvs"):
        return _of_scipy(name, given), None
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(
            f"{name}: expected Float, Int, Ordinal, Categorical, a list of values, or uniform, "
            f"loguniform or randint of scipy.stats, not {shown(given)}."
        )
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if not values:
        raise ConfigError(f"{name}: the list of values is empty.")
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers:
        values = sorted(set(values))
    if len(values) == 1:
        return 0, values
    return (Ordinal if numbers else Categorical)(range(len(values))), values


def _of_scipy(name: str, given: Any) -> Parameter:
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind == "randint":
        low, high = given.support()
        return Int(int(low), int(high))
    if kind in ("uniform", "loguniform", "reciprocal"):
        low, high = map(float, given.support())
        if kind == "uniform":
            return Float(low, high)
        if low > 0 and math.isclose(given.median(), math.sqrt(low) * math.sqrt(high)):
            return Float(low, high, log=True)
    raise ConfigError(
        f"{name}: of scipy.stats, uniform, loguniform (without loc) and randint are understood, "
        f"not {kind}. Give a Float or an Int, with log=True if orders of magnitude matter."
    )
