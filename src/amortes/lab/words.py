"""Numbers and reasons as people read them."""

import math
from typing import Any

from amortes.optimiser import Explanation, Int, Linear, Space
from amortes.optimiser.choices import Choices, Parameter
from amortes.optimiser.expression import Expression

TINY, SMALL = 0.001, 0.02
"""Shares of the spread of the results below which a gain is negligible, or small."""


def number_text(value: Any, digits: int = 4) -> str:
    """A number with some significant digits and a real minus sign; anything else as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10**digits):
        text = str(int(value)) if abs(value) < 1e12 else f"{value:.{digits}g}"
    else:
        text = f"{value:.{digits}g}"
        if 1e-4 <= abs(value) < 1e6:  # no exponent where people would not write one
            decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
            text = f"{value:.{decimals}f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def interval_text(lower: float, upper: float) -> str:
    """Two ends with as many digits as tell them apart."""
    digits = 3
    while digits < 8 and number_text(lower, digits) == number_text(upper, digits):
        digits += 1
    return f"{number_text(lower, digits)} to {number_text(upper, digits)}"


def range_text(parameter: Parameter) -> str:
    """What values a parameter may have."""
    if isinstance(parameter, Choices):
        return ", ".join(number_text(choice) for choice in parameter.choices)
    text = f"{number_text(parameter.low)} to {number_text(parameter.high)}"
    if parameter.step not in (None, 1 if isinstance(parameter, Int) else None):
        text += f" in steps of {number_text(parameter.step)}"
    return text + ", by orders of magnitude" * parameter.log


def constraint_text(space: Space) -> list[str]:
    """The constraints as formulas, as `formula` reads them."""
    texts = []
    for constraint in space.constraints:
        if isinstance(constraint, Linear):
            terms = [
                name if a == 1 else f"{number_text(a, 12)} * {name}"
                for name, a in constraint.coefficients.items()
            ]
            left = " + ".join(terms).replace("+ −", "− ")
            texts.append(f"{left} ≤ {number_text(constraint.upper, 12)}")
        elif isinstance(constraint, Expression):
            texts.append(constraint.text)
    return texts


def condition_text(space: Space, name: str) -> str:
    """When a parameter matters; nothing if it always does."""
    condition = space.conditions.get(name)
    if condition is None:
        return ""
    return f"if {condition.parent} is {' or '.join(number_text(v) for v in condition.values)}"


def reason_text(explanation: Explanation, kind: str) -> str:
    """Why a trial is suggested, in one or two sentences."""
    near = explanation.nearest
    if kind == "own":
        return "Your own choice."
    if kind == "initial" or explanation.prediction is None:
        return "One of the first, which are spread over the ranges to get an overview."
    if kind == "repeat" and near is not None:
        return (
            f"Repeats trial {near.number}, which gave {number_text(near.value)}: measuring there "
            f"again tells how much of that was chance."
        )
    where = ""
    if near is not None and near.differs:
        differs = " and ".join(list(near.differs)[:2])
        value = number_text(near.value)
        where = f" The closest result, {value} of trial {near.number}, differs most in {differs}."
    if kind == "explore":
        return f"Explores: little is known here, so the result will tell much.{where}"
    gain = explanation.improvement or 0.0
    return (
        f"Refines: good results are expected here; it may improve on the best, by "
        f"{number_text(gain, 2)} on average.{where}"
    )


def worth_text(gain: float, spread: float, unit: str, n: int) -> tuple[str, str]:
    """Whether it is worth going on: yes, maybe or no, and a sentence."""
    amount = f"{number_text(gain, 2)}{' ' + unit if unit else ''}"
    if n < 3 or spread <= 0:
        return "yes", "There are too few different results to tell; keep going."
    share = gain / spread
    if share < TINY:
        return "no", (
            f"Little is left to gain: the next experiment is expected to improve the best by "
            f"{amount}, less than a thousandth of the spread of the results. Stopping is fine."
        )
    if share < SMALL:
        return "maybe", (
            f"Improvements are getting small: the next experiment is expected to bring {amount}, "
            f"{100 * share:.1f} % of the spread of the results. Go on if that is worth its cost."
        )
    return "yes", (
        f"The next experiment is expected to improve the best by {amount}, {100 * share:.0f} % of "
        f"the spread of the results."
    )
