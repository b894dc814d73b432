"""Numbers as words of a report."""

import math
from collections.abc import Iterable


def with_error(mean: float, error: float, digits: int = 2) -> str:
    """`-1.23 ± 0.04`; without the error if it is unknown, empty if the mean is."""
    if math.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def seconds(value: float) -> str:
    """Seconds with two significant digits, without exponents."""
    if math.isnan(value):
        return ""
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 4)}f}"


def times(factor: float) -> str:
    """`3.1×`, `196×`: two significant digits, without exponents."""
    return f"{seconds(factor)}×" if not math.isnan(factor) else ""


def span(numbers: Iterable[int]) -> str:
    """`3`, or `3-5` if they differ."""
    found = sorted(set(numbers))
    return f"{found[0]}-{found[-1]}" if len(found) > 1 else str(found[0])
