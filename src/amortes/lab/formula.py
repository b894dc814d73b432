"""Limits between parameters as people write them: `2 * flour + water <= 500`.

A sum of parameters becomes a `Linear` constraint, which the search knows how to follow; names may
have spaces there. Anything else is an `Expression`.
"""

import re
from collections.abc import Sequence

from amortes.errors import ConfigError
from amortes.optimiser import Linear
from amortes.optimiser.expression import Expression

NUMBER = r"\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?|[.,]\d+"


class NotLinearError(ConfigError):
    """A formula that is no comparison of sums."""


def parse(text: str, names: Sequence[str]) -> Linear | Expression:
    """The constraint that a formula says; a `ConfigError` if it makes no sense."""
    try:
        return parse_linear(text, names)
    except NotLinearError as error:
        not_linear = error
    plain = text.replace("≤", "<=").replace("≥", ">=").replace("×", "*").replace("−", "-")
    try:
        expression = Expression(plain)
    except ConfigError:
        raise not_linear from None
    if unknown := sorted(expression.names - set(names)):
        raise ConfigError(
            f"“{text}” has {', '.join(unknown)}, but the parameters are {', '.join(names)}."
        )
    return expression


def parse_linear(text: str, names: Sequence[str]) -> Linear:
    """The constraint that a formula says, about parameters of these names."""
    sides = re.split(r"<=|>=|≤|≥|<|>", text)
    if len(sides) != 2:
        raise NotLinearError(f"“{text}” must be one comparison, such as 2 * a + b <= 10.")
    left, right = (_terms(side, names, text) for side in sides)
    sign = 1.0 if re.search(r"<|≤", text) else -1.0
    coefficients = {
        name: sign * (left.get(name, 0.0) - right.get(name, 0.0))
        for name in dict.fromkeys([*left, *right])
        if name
    }
    upper = sign * (right.get("", 0.0) - left.get("", 0.0))
    coefficients = {name: a for name, a in coefficients.items() if a != 0.0}
    if not coefficients:
        raise ConfigError(f"“{text}” does not depend on any parameter.")
    return Linear(coefficients, upper)


def _terms(side: str, names: Sequence[str], whole: str) -> dict[str, float]:
    """Coefficients by name of a sum of terms; the constant has no name."""
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or r"(?!)"
    term = re.compile(
        rf"\s*(?P<sign>[-+−])?\s*(?:(?P<factor>{NUMBER})\s*[*·×]?\s*)?(?P<name>{known})?"
        rf"(?:\s*[*·×]\s*(?P<after>{NUMBER}))?(?:\s*/\s*(?P<over>{NUMBER}))?\s*"
    )
    found: dict[str, float] = {}
    place = 0
    while place < len(side.rstrip()) or place == 0:
        match = term.match(side, place)
        parts = match.groupdict() if match else {}
        if match is None or not (parts["factor"] or parts["name"]) or (place and not parts["sign"]):
            raise NotLinearError(
                f"“{side.strip()}” in “{whole}” is not a sum of numbers and parameters "
                f"({', '.join(names)})."
            )
        size = _number(parts["factor"]) * _number(parts["after"]) / _number(parts["over"])
        key = parts["name"] or ""
        found[key] = found.get(key, 0.0) + (-size if parts["sign"] in ("-", "−") else size)
        place = match.end()
    return found


def _number(text: str | None) -> float:
    return 1.0 if text is None else float(text.replace(",", "."))
