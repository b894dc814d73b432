"""Every error amortes raises on purpose.

All derive from `AmortesError`, so one `except` catches them; each also derives from the built-in
exception that a caller would expect, such as `ValueError`. A message says what was passed, what was
expected, and what to do.
"""

import contextlib
import operator
from collections.abc import Iterator, Mapping
from typing import Any

SHOWN = 200
"""Characters of a value that fit into a message."""


class AmortesError(Exception):
    """Base class of all errors that amortes raises on purpose."""


class ConfigError(AmortesError, ValueError):
    """An argument or a setting is invalid; the message names it."""


def require_least(config: object, **least: float) -> None:
    """Raise `ConfigError` if a field of `config` is below the number given for it."""
    for field, low in least.items():
        if not getattr(config, field) >= low:
            raise ConfigError(f"{field}: must be at least {low:g}, not {getattr(config, field)}.")


def shown(value: Any) -> str:
    """The `repr` of anything a user gave, for a message: cut if long, never an error itself."""
    try:
        text = repr(value)
    except Exception:  # an int of more digits than Python prints, or an object without a good repr
        return f"something of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def require_int(name: str, value: Any, least: int) -> int:
    """The value, of any library's integer type, as an int; `ConfigError` if it is no such."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except Exception:  # TypeError, or what another library raises
        number = None
    if number is None or not least <= number < 2**63:
        raise ConfigError(
            f"{name}: must be an int of at least {least} and below 2**63, not {shown(value)}."
        )
    return number


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], form: str = "{}: {} -> {}", prefix: str = ""
) -> list[str]:
    """Lines such as `lr: 0.1 -> 0.2`, one for every leaf in which two nested dictionaries differ.

    For messages that refuse a configuration. `form` has places for the dotted name, the old and
    the new value.
    """
    lines = []
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name), new.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            lines += differences(a, b, form, f"{prefix}{name}.")
        elif a != b:
            lines.append(form.format(prefix + name, a, b))
    return lines


class DataError(AmortesError, ValueError):
    """A config, a result or an array is invalid: it has the wrong values, type or shape."""


class FileError(AmortesError, OSError):
    """A file is missing or damaged, or was written by something else."""


class MissingExtraError(AmortesError, ImportError):
    """An optional dependency is not installed; the message says which extra to install."""


@contextlib.contextmanager
def needs_extra(extra: str, what: str, instead: str = "") -> Iterator[None]:
    """Imports in the block that fail become a `MissingExtraError`: `what` needs which package."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what}, which is not installed; run `pip install amortes[{extra}]`{instead}."
        ) from error


@contextlib.contextmanager
def about(what: str, kind: type[AmortesError] | None = None) -> Iterator[None]:
    """Errors of ours in the block begin with what they are about; `kind` is what they become."""
    try:
        yield
    except AmortesError as error:
        raise (kind or type(error))(f"{what} {error}") from None


class TrainingError(AmortesError, RuntimeError):
    """A training run cannot continue, for instance because its loss is not finite."""
