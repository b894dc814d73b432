"""Optuna's distributions as parameters of a space, and values of one as values of the other.

    float               Float, log as it is
    float with a step   Int: the number of steps above `low`
    int                 Int: the number of steps above `low`; if log, the number itself
    categorical         Categorical: the place of the choice in their list, so that choices may be
                        any objects

Numbers of steps too large for an Int are a Float, rounded on the way back.
"""

from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from amortes.errors import ConfigError
from amortes.integrations.optuna.structure import Structure
from amortes.optimiser import Categorical, Float, Int, Space
from amortes.optimiser.choices import Parameter
from amortes.optimiser.conditions import Condition
from amortes.optimiser.numeric import MAX_INTEGER
from amortes.optimiser.space import Config

OFF_GRID = 1e-6  # a value this many steps beside the grid is on it, but for rounding


class Translation:
    """The structure of a study as a space, with values both ways."""

    def __init__(self, structure: Structure) -> None:
        self.distributions = structure.distributions
        self.space = Space(
            {name: _parameter(d) for name, d in structure.distributions.items()},
            conditions={
                name: Condition(condition.parent, tuple(self._stored(condition)))
                for name, condition in structure.conditions.items()
            },
        )

    def to_values(self, params: Mapping[str, Any]) -> Config:
        """Values of some of the parameters for the space; a ValueError if one is outside it."""
        values = {name: _to_value(self.distributions[name], v) for name, v in params.items()}
        return {name: self.space.free[name].check(value) for name, value in values.items()}

    def to_params(self, config: Config) -> dict[str, Any]:
        """The config as Optuna's parameters."""
        return {name: _to_param(self.distributions[name], value) for name, value in config.items()}

    def _stored(self, condition: Condition) -> list[Any]:
        """The values of a condition, as those of the parent in the space."""
        distribution = self.distributions[condition.parent]
        params = map(distribution.to_external_repr, condition.values)
        return [_to_value(distribution, param) for param in params]


def constant(distribution: BaseDistribution) -> Any:
    """The only value of a distribution that is single."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return distribution.low
    raise _unknown(distribution)


def _parameter(distribution: BaseDistribution) -> Parameter:
    match distribution:
        case CategoricalDistribution(choices=choices):
            return Categorical(range(len(choices)))
        case FloatDistribution(low=low, high=high, step=None, log=log):
            return Float(low, high, log=log)
        case IntDistribution(low=low, high=high, log=True):
            return _integer(low, high, log=True)
        case FloatDistribution(low=low, high=high, step=float(step)):
            return _integer(0, round((high - low) / step))
        case IntDistribution(low=low, high=high, step=step):
            return _integer(0, (high - low) // step)
    raise _unknown(distribution)


def _integer(low: int, high: int, *, log: bool = False) -> Parameter:
    if max(abs(low), abs(high)) <= MAX_INTEGER:
        return Int(low, high, log=log)
    return Float(low, high, log=log)


def _to_value(distribution: BaseDistribution, param: Any) -> Any:
    match distribution:
        case CategoricalDistribution():
            return int(distribution.to_internal_repr(param))
        case (
            FloatDistribution(low=low, step=float(step))
            | IntDistribution(low=low, step=int(step), log=False)
        ):
            steps = (param - low) / step
            return round(steps) if abs(steps - round(steps)) <= OFF_GRID else steps
    return param


def _to_param(distribution: BaseDistribution, value: Any) -> Any:
    match distribution:
        case CategoricalDistribution(choices=choices):
            return choices[value]
        case FloatDistribution(low=low, high=high, step=float(step)):
            return min(low + round(value) * step, high)
        case IntDistribution(log=True):
            return round(value)
        case IntDistribution(low=low, step=step):
            return low + round(value) * step
    return value


def _unknown(distribution: BaseDistribution) -> ConfigError:
    return ConfigError(
        f"cannot sample from {distribution!r}: expected a FloatDistribution, IntDistribution or "
        f"CategoricalDistribution."
    )
