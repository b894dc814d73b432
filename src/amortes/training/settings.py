"""Frozen configuration dataclasses to and from JSON, and changed by `a.b=value` on a command line.

Types come from the annotations: numbers, strings, booleans, `Literal`, tuples, `X | None` and other
dataclasses. A wrong name or value is a `ConfigError` that gives the full dotted name, what came in
and what is expected.
"""

import contextlib
import dataclasses
import json
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from amortes.errors import ConfigError

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values (tuples become lists); `from_dict` inverts it."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return values


def from_dict(cls: type[T], values: Any, where: str = "", base: T | None = None) -> T:
    """Build dataclass `cls` from JSON values.

    Missing fields take their values in `base` if there is one, else their defaults.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where or cls.__name__}: expected a table of settings, not {values!r}.")
    hints = get_type_hints(cls)
    prefix = f"{where}." if where else ""
    found = {} if base is None else {name: getattr(base, name) for name in hints}
    for name, value in values.items():
        if name not in hints:
            names = ", ".join(hints if base is None else setting_names(base, prefix))
            raise ConfigError(f"{prefix}{name}: no such setting; there are {names}.")
        child = found.get(name)
        if dataclasses.is_dataclass(child):
            found[name] = from_dict(type(child), value, prefix + name, child)
        else:
            found[name] = _convert(hints[name], value, prefix + name)
    try:
        return cls(**found)
    except ConfigError as error:  # its message begins with the name of the field
        raise ConfigError(f"{prefix}{error}") from error
    except TypeError as error:
        raise ConfigError(f"{where or cls.__name__}: incomplete settings: {error}.") from error


def override(config: T, assignments: Iterable[str]) -> T:
    """A copy of a dataclass instance with settings such as `lr=3e-3` or `tasks.batch_size=32`.

    All assignments take effect at once, so that values checked against each other can change
    together.
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise ConfigError(f"{assignment!r}: write name=value, for instance lr=1e-3.")
        *parents, leaf = path.strip().split(".")
        table = changes
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: {parent} is set as a whole and in part.")
        table[leaf] = text.strip()
    return from_dict(type(config), changes, base=config)


def setting_names(config: Any, prefix: str = "") -> list[str]:
    """Dotted names of all settings of a dataclass instance, as `override` takes them."""
    names = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        nested = dataclasses.is_dataclass(value)
        names += setting_names(value, f"{prefix}{field.name}.") if nested else [prefix + field.name]
    return names


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value`, a JSON value or the text of one, as the annotated type `hint`."""
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        inner = [a for a in arguments if a is not type(None)]
        return _convert(inner[0], value, where)
    if origin is Literal:
        if value not in arguments:
            names = ", ".join(map(str, arguments))
            raise ConfigError(f"{where}: must be one of {names}, not {value!r}.")
        return value
    if origin is tuple:
        items = value.split(",") if isinstance(value, str) else value
        kinds = arguments
        if isinstance(items, list | tuple) and len(arguments) == 2 and arguments[1] is Ellipsis:
            kinds = arguments[:1] * len(items)
        if not isinstance(items, list | tuple) or len(items) != len(kinds):
            raise ConfigError(f"{where}: expected {len(kinds)} values, not {value!r}.")
        return tuple(_convert(kind, item, where) for kind, item in zip(kinds, items, strict=True))
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, where)  # type: ignore[arg-type]
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    named = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if hint not in named:
        raise TypeError(f"{where}: settings of type {hint} are not supported.")
    with contextlib.suppress(ValueError, TypeError):
        if hint is bool and str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        if hint is str and isinstance(value, str):
            return value
        if hint is float and not isinstance(value, bool):
            return float(value)
        if hint is int and not isinstance(value, bool):
            if isinstance(value, str) and "e" in value.lower() and float(value).is_integer():
                return int(float(value))  # 1e6 is a whole number too
            if not isinstance(value, float) or value.is_integer():
                return int(value)
    raise ConfigError(f"{where}: expected {named[hint]}, not {value!r}.")
