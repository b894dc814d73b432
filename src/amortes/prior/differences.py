"""What differs between two configurations, for messages that refuse one of them."""

from collections.abc import Mapping
from typing import Any


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], form: str = "{}: {} -> {}", prefix: str = ""
) -> list[str]:
    """Lines such as `lr: 0.1 -> 0.2`, one for every leaf in which two nested dictionaries differ.

    `form` has places for the dotted name, the old and the new value.
    """
    lines = []
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name), new.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            lines += differences(a, b, form, f"{prefix}{name}.")
        elif a != b:
            lines.append(form.format(prefix + name, a, b))
    return lines
