"""A search space in a TOML file.

    epochs = 20                        # a constant

    [lr]
    type = "float"
    low = 1e-5
    high = 1e-1
    log = true

    [layers]
    type = "int"
    low = 1
    high = 8
    step = 1                           # the default; a float has none by default

    [act]
    type = "categorical"               # or "ordinal", if the order means something
    choices = ["relu", "gelu"]

    [model]
    type = "categorical"               # parameters that only matter for one of the choices
    [model.choices.svm.C]
    type = "float"
    low = 1e-3
    high = 1e3
    log = true
    [model.choices.bayes]              # a choice without any

    [[constraints]]                    # 8 layers + width <= 96
    coefficients = { layers = 8, width = 1 }
    upper = 96

    [[constraints]]                    # or a comparison; see amortes.optimiser.expression
    expression = "layers * width ** 2 <= 2 ** 14"

A table is a parameter, anything else at the top a constant.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amortes.errors import ConfigError, FileError, about, shown
from amortes.optimiser import Linear, Space
from amortes.optimiser.choices import Choices
from amortes.optimiser.description import KINDS, constraint_of, parameter_of
from amortes.optimiser.expression import Expression

CONSTRAINTS = "constraints"
FIELDS = ({"coefficients", "upper"}, {"expression"})


def read_space(path: Path) -> Space:
    """The space in a file; errors name the file and the key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not a TOML file.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"{path} is not valid TOML: {error}.") from None
    with about(f"{path}:"):
        constraints = _constraints(tables.pop(CONSTRAINTS, []))
        return Space({name: _entry(name, entry) for name, entry in tables.items()}, constraints)


def _entry(name: str, entry: Any) -> Any:
    """A parameter from its table; anything but a table is a constant."""
    if not isinstance(entry, Mapping):
        return entry
    fields = dict(entry)
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        found = "is missing" if kind is None else f"is {kind!r}"
        raise ConfigError(f"[{name}] type {found}; it must be one of {', '.join(KINDS)}.")
    if kind == "categorical" and isinstance(fields.get("choices"), Mapping):
        fields["choices"] = {
            choice: _branch(f"{name}.choices.{choice}", table)
            for choice, table in fields["choices"].items()
        }
    with about(f"[{name}]"):
        parameter = parameter_of(kind, fields)
    if isinstance(parameter, Choices) and not parameter.is_json:
        raise ConfigError(
            f"[{name}] choices must be strings, numbers, booleans, or lists of them, not "
            f"{shown(fields['choices'])}."
        )
    return parameter


def _branch(name: str, table: Any) -> dict[str, Any]:
    """The parameters and constants that come with a choice."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"[{name}] must be a table of parameters, not {shown(table)}.")
    return {child: _entry(f"{name}.{child}", entry) for child, entry in table.items()}


def _constraints(tables: Any) -> list[Linear | Expression]:
    if not isinstance(tables, list):
        raise ConfigError(f"{CONSTRAINTS} must be written as [[{CONSTRAINTS}]], not {tables!r}.")
    constraints: list[Linear | Expression] = []
    for i, table in enumerate(tables, 1):
        if not isinstance(table, Mapping) or set(table) not in FIELDS:
            raise ConfigError(
                f"[[{CONSTRAINTS}]] number {i} must have coefficients and upper, or an expression, "
                f"not {shown(table)}."
            )
        with about(f"[[{CONSTRAINTS}]] number {i}:"):
            constraints.append(constraint_of(table))
    return constraints
