"""The search space of a study: which parameters it has, and how they are those of a `Space`.

Objectives of Optuna may suggest parameters only if others have certain values, and say so nowhere.
It can be learned: c depends on p if p has a finite number of values, every trial with c has p, and
no value of p was seen both with and without c. Then c is active if p is, at a value seen with c. Of
several such p it is the one whose values have been repeated most: the least likely by chance. A
parameter that depends on none (but, say, on a float) is left out, and one whose range has changed.

In a `Space`, the distributions are

    float               Float, log as it is
    float with a step   Int: the number of steps above `low`
    int                 Int: the number of steps above `low`; if log, the number itself
    categorical         Categorical: the place of the choice in their list, so that choices may be
                        any objects

Numbers of steps too large for an Int are a Float, rounded on the way back.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from amortes.errors import ConfigError
from amortes.optimiser import Categorical, Float, Int, Space
from amortes.optimiser.choices import Parameter
from amortes.optimiser.conditions import Condition
from amortes.optimiser.numeric import MAX_INTEGER
from amortes.optimiser.space import Config

Distributions = Mapping[str, BaseDistribution]
OFF_GRID = 1e-6  # a value this many steps beside the grid is on it, but for rounding


@dataclass(frozen=True)
class Structure:
    """Parameters that vary, by name, parents first; and what the activity of some depends on.

    Values of conditions are as Optuna stores them.
    """

    distributions: dict[str, BaseDistribution]
    conditions: dict[str, Condition]

    @classmethod
    def learn(
        cls, trials: Sequence[FrozenTrial], candidates: Distributions | None = None
    ) -> "Structure":
        """From complete trials; about these parameters or, by default, all that occur."""
        if candidates is None:
            candidates = _consistent(trials)
        names = [name for name in sorted(candidates) if not candidates[name].single()]
        have = {
            name: [t for t in trials if t.distributions.get(name) == candidates[name]]
            for name in names
        }
        always = {name: candidates[name] for name in names if len(have[name]) in (0, len(trials))}
        found = cls(always, {})
        # Parents must come first: go round until nothing is added.
        waiting = sorted(set(names) - always.keys(), key=lambda name: (-len(have[name]), name))
        while waiting:
            left = [name for name in waiting if not found._attach(name, candidates, have)]
            if len(left) == len(waiting):
                break
            waiting = left
        return found

    def without(self, names: set[str]) -> "Structure":
        """The structure without some parameters that no other depends on."""
        return Structure(
            {name: d for name, d in self.distributions.items() if name not in names},
            {name: c for name, c in self.conditions.items() if name not in names},
        )

    @property
    def shared(self) -> "Structure":
        """The parameters that all trials have."""
        return self.without(set(self.conditions))

    def _attach(
        self, name: str, candidates: Distributions, have: Mapping[str, list[FrozenTrial]]
    ) -> bool:
        """Find the parent of a parameter, if it has one among those known."""
        having = {trial.number for trial in have[name]}
        best: tuple[int, Condition] | None = None
        for parent, distribution in self.distributions.items():
            if isinstance(distribution, FloatDistribution) and distribution.step is None:
                continue
            seen: dict[bool, list[float]] = defaultdict(list)
            for trial in have[parent]:
                value = distribution.to_internal_repr(trial.params[parent])
                seen[trial.number in having].append(value)
            values = frozenset(seen[True])
            if len(seen[True]) < len(having) or values & set(seen[False]):
                continue
            repeated = len(have[parent]) - len(values) - len(set(seen[False]))
            if best is None or repeated > best[0]:
                best = repeated, Condition(parent, tuple(sorted(values)))
        if best is None:
            return False
        self.distributions[name] = candidates[name]
        self.conditions[name] = best[1]
        return True


def _consistent(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """All parameters but those with more than one distribution."""
    found: dict[str, BaseDistribution] = {}
    changed = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            # Compared, not hashed: choices may be lists.
            if found.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {name: distribution for name, distribution in found.items() if name not in changed}


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
