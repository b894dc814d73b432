"""A Griffe extension: arguments in our docstrings, as the reference shows them.

Docstrings describe arguments as lines `name: what it is`, continued by indented lines. Griffe reads
Google's style, so lines about arguments (fields of a dataclass) become its section of that name.
"""

import re
from typing import Any

import griffe

ARGUMENT = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


class Parameters(griffe.Extension):
    """Rewrites the docstrings of functions and classes."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Of its own arguments."""
        _rewrite(func, {parameter.name for parameter in func.parameters}, "Parameters")

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Of the arguments of its constructor, else of its fields."""
        init = cls.members.get("__init__")
        if isinstance(init, griffe.Function):
            _rewrite(cls, {parameter.name for parameter in init.parameters}, "Parameters")
        else:
            _rewrite(cls, set(cls.attributes), "Attributes")


def _rewrite(target: griffe.Object, names: set[str], section: str) -> None:
    if target.docstring is None:
        return
    rest: list[str] = []
    arguments: list[str] = []
    inside = False
    for line in target.docstring.value.splitlines():
        match = ARGUMENT.match(line)
        if match and names.issuperset(match[1].split(", ")):
            arguments += [f"    {name}: {match[2]}" for name in match[1].split(", ")]
            inside = True
        elif inside and line.startswith("    "):
            arguments.append(f"    {line}")
        else:
            inside = False
            rest.append(line)
    if arguments:
        text = "\n".join(rest).strip("\n")
        target.docstring.value = "\n".join([text, "", f"{section}:", *arguments])
