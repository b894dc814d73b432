"""Values that survive JSON, and others in words."""

import json
import re
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from amortes.errors import ConfigError, shown


def is_plain(value: Any) -> bool:
    """Whether the value survives JSON unchanged; a tuple or a member of an Enum does not."""
    try:
        # By their texts: a member of an enumeration of strings equals one, but is none.
        return repr(json.loads(json.dumps(value, allow_nan=False))) == repr(value)
    except (TypeError, ValueError, RecursionError):
        return False


def plain(value: Any, what: str) -> Any:
    """The value if it survives JSON unchanged (NumPy scalars become Python's), else an error."""
    if isinstance(value, np.generic):
        value = value.item()
    if not is_plain(value):
        raise ConfigError(
            f"{what} {shown(value)} is not a JSON value (a finite number, string, bool, None, or a "
            f"list or dict of these); tuples would come back as lists, members of an Enum as their "
            f"values."
        )
    return value


def text(value: Any) -> str:
    """A value that is not JSON in words that are the same in another process."""
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return value.__qualname__  # without the module, which may be __main__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
