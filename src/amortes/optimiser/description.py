"""Spaces as JSON: parameters by name, each a dict with its type."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from amortes.errors import ConfigError, about, shown
from amortes.optimiser.choices import Categorical, Ordinal, Parameter
from amortes.optimiser.conditions import Condition
from amortes.optimiser.constraints import Constraint, Linear
from amortes.optimiser.expression import Expression
from amortes.optimiser.numeric import Float, Int
from amortes.optimiser.text import plain

if TYPE_CHECKING:
    from amortes.optimiser.space import Space

KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Float, Int, Ordinal, Categorical)}
AGAIN = "Pass the same space again: `Optimizer.load(path, space=space)`."


def checked_entry(name: Any, entry: Any) -> Any:
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


def parameter_of(kind: str, fields: Mapping[str, Any]) -> Parameter:
    """The parameter of a kind with these fields; a `ConfigError` says what is wrong with them."""
    known = inspect.signature(KINDS[kind]).parameters
    needed = [name for name, field in known.items() if field.default is field.empty]
    if unknown := [name for name in fields if name not in known]:
        raise ConfigError(f"unknown key {unknown[0]!r}; {kind} takes {', '.join(known)}.")
    if missing := [name for name in needed if name not in fields]:
        raise ConfigError(f"{missing[0]} is missing; {kind} needs {' and '.join(needed)}.")
    parameter: Parameter = KINDS[kind](**fields)
    return parameter


def constraint_of(fields: Mapping[str, Any]) -> Linear | Expression:
    """The constraint with these fields."""
    return Expression(fields["expression"]) if "expression" in fields else Linear(**fields)


def describe(space: "Space") -> dict[str, Any]:
    """A space in JSON values; `parsed` inverts it."""
    parameters = space.parameters
    conditions = {
        name: {
            "parent": condition.parent,
            "values": [parameters[condition.parent].to_json(value) for value in condition.values],
        }
        for name, condition in space.conditions.items()
    }
    return {
        "parameters": {
            name: p.to_dict() if isinstance(p, Parameter) else {"type": "fixed", "value": p}
            for name, p in parameters.items()
        },
        "constraints": [c.to_dict() for c in space.constraints if isinstance(c, Constraint)],
        "pool": None if space.pool is None else [space.to_json(config) for config in space.pool],
    } | ({"conditions": conditions} if conditions else {})


def parsed(description: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the `Space` that is described; anything else is a `ConfigError`."""
    if not isinstance(description, Mapping) or not isinstance(
        description.get("parameters"), Mapping
    ):
        raise ConfigError(
            f"space: not the description of a space: expected an object with `parameters`, which "
            f"maps names to the fields of each, not {shown(description)}."
        )
    try:
        parameters = {k: _entry(k, p) for k, p in description["parameters"].items()}
        conditions = {
            name: Condition(condition["parent"], tuple(condition["values"]))
            for name, condition in description.get("conditions", {}).items()
        }
        constraints = [_constraint(c) for c in description.get("constraints", ())]
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"space: not the description of a space: {error!r}.") from None
    return {
        "parameters": parameters,
        "constraints": constraints,
        "pool": description.get("pool"),
        "conditions": conditions,
    }


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
            f"{name}: JSON cannot express its choices, so the file does not contain them. {AGAIN}"
        )
    with about(f"{name}:"):
        return parameter_of(kind, fields)


def _constraint(description: Mapping[str, Any]) -> Linear | Expression:
    if "function" in description:
        raise ConfigError(
            f"constraints: the file cannot contain the function {description['function']}. {AGAIN}"
        )
    return constraint_of(description)
