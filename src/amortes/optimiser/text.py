"""Values as JSON; values, configs and small tables as people read them, also in HTML."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from amortes.errors import ConfigError, shown

LONGEST = 60
"""Characters after which a value is cut."""


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


def in_words(value: Any) -> str:
    """A value that is not JSON, in words that are the same in another process."""
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return value.__qualname__  # without the module, which may be __main__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def number(value: Any, digits: int = 5) -> str:
    """Floats with some significant digits, anything else as it is."""
    return f"{value:.{digits}g}" if isinstance(value, float) else printable(str(value))


def interval(lower: float, upper: float, word: str = "to", digits: int = 5) -> str:
    """The ends of an interval, with as many digits as tell them apart."""
    enough = (n for n in range(digits, 13) if number(lower, n) != number(upper, n))
    digits = next(enough, digits)
    return f"{number(lower, digits)} {word} {number(upper, digits)}"


def printable(text: str) -> str:
    """The text with what no file or terminal can encode (lone surrogates) replaced."""
    return text.encode("utf-8", "replace").decode()


def shortened(value: Any, digits: int = 5) -> str:
    """A value as text, cut where it gets long."""
    text = number(value, digits)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def config_text(config: Mapping[str, Any]) -> str:
    """The config in one line, `lr=0.001, layers=3`."""
    return ", ".join(f"{printable(name)}={shortened(value)}" for name, value in config.items())


def percent(share: float) -> str:
    """A share as a percentage of three significant digits."""
    return f"{100 * share:.3g}%"


def counted(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def html_table(rows: Iterable[Sequence[Any]], title: str) -> str:
    """An HTML table of cells that are escaped; `title` stands above it."""
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{_cell(c)}</td>" for c in row) + "</tr>"
        for row in rows
    )
    return f"<p><b>{_cell(title)}</b></p><table>{body}</table>"


def _cell(value: Any) -> str:
    return html.escape(shortened(value) if not isinstance(value, str) else printable(value))
