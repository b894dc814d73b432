"""Parameters that only matter for some values of another, their parent.

    Categorical({"svm": {"C": Float(1e-3, 1e3, log=True)}, "forest": {"trees": Int(10, 500)}})

Choices hold the parameters that come with them, as the branches of a program do; these may be
choices of that kind themselves. So a parent always exists, comes first and has finitely many
values, and conditions cannot contradict each other, as they could if every parameter named its own.
A name may be in several branches of one parent if it is the same parameter in all.

A `Space` has the parameters side by side, with a `Condition` for those that have a parent. Where a
parameter is inactive, a config does not have it, and its coordinates are those of the middle of its
range: configs that differ in inactive parameters only are one config, with one point. Levesque et
al. (Bayesian optimization for conditional hyperparameter spaces, IJCNN 2017) compare this with
alternatives. The Optuna sampler, which learns the conditions of a study, uses the same.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amortes.errors import ConfigError, about, shown
from amortes.optimiser.choices import Categorical, Parameter, identity


@dataclass(frozen=True)
class Condition:
    """A parameter is active if its parent is, at one of these values."""

    parent: str
    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Whether this value of the parent is one of them."""
        return identity(value) in self._identities

    @cached_property
    def _identities(self) -> frozenset[Hashable]:
        return frozenset(map(identity, self.values))


Conditions = Mapping[str, Condition]


def flatten(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Condition]]:
    """Parameters without branches, parents first, and the conditions that the branches were."""
    given: dict[str, Any] = {}
    conditions: dict[str, Condition] = {}

    def add(name: str, entry: Any, condition: Condition | None) -> None:
        if name not in given:
            given[name] = entry
            if condition is not None:
                conditions[name] = condition
            if isinstance(entry, Categorical):
                for choice, branch in zip(entry.choices, entry.branches, strict=False):
                    for child, below in branch.items():
                        add(child, below, Condition(name, (choice,)))
            return
        known = conditions.get(name)
        if known is None or condition is None or known.parent != condition.parent:
            raise ConfigError(
                f"{name}: occurs more than once in the space; give each parameter its own name. "
                f"(Only branches of the same Categorical may share a parameter.)"
            )
        if given[name] != entry:
            raise ConfigError(
                f"{name}: is {shown(given[name])} in one branch of {known.parent} and "
                f"{shown(entry)} in another; give them different names."
            )
        conditions[name] = Condition(known.parent, known.values + condition.values)

    for name, entry in parameters.items():
        add(name, entry, None)
    flat = {
        name: Categorical(entry.choices) if isinstance(entry, Categorical) else entry
        for name, entry in given.items()
    }
    return flat, conditions


def check_conditions(conditions: Any, parameters: Mapping[str, Any]) -> dict[str, Condition]:
    """Conditions between these parameters, in their order; a `ConfigError` if one is wrong."""
    if not isinstance(conditions, Mapping):
        raise ConfigError(
            f"conditions: expected a dict of Condition by name, not {shown(conditions)}."
        )
    if unknown := [name for name in conditions if name not in parameters]:
        raise ConfigError(f"conditions: there is no parameter {unknown[0]!r}.")
    names = list(parameters)
    checked = {}
    for name in names:
        condition = conditions.get(name)
        if condition is None:
            continue
        if not isinstance(condition, Condition) or not condition.values:
            raise ConfigError(f"{name}: expected a Condition with values, not {shown(condition)}.")
        parent = parameters.get(condition.parent)
        if not isinstance(parent, Parameter) or parent.cardinality is None:
            raise ConfigError(
                f"{name}: depends on {condition.parent!r}, which is not a parameter with a finite "
                f"number of values."
            )
        if names.index(condition.parent) > names.index(name):
            raise ConfigError(f"{name}: depends on {condition.parent}, which must come before it.")
        with about(f"{name}: depends on {condition.parent}:", ConfigError):
            values = tuple(parent.check(value) for value in condition.values)
        checked[name] = Condition(condition.parent, values)
    return checked


def activity(
    names: Mapping[str, Any], conditions: Conditions, config: Mapping[str, Any]
) -> dict[str, bool | None]:
    """Whether each of the names matters; None if that depends on values the config lacks."""
    active: dict[str, bool | None] = {}
    for name in names:
        condition = conditions.get(name)
        if condition is None:
            active[name] = True
        elif active[condition.parent] is not False and condition.parent in config:
            active[name] = condition.holds(config[condition.parent])
        else:
            active[name] = active[condition.parent] and None
    return active
