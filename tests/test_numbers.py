import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from amortes.numbers import as_float

NUMBERS: list[tuple[Any, float]] = [
    (1.5, 1.5),
    (2, 2.0),
    (True, 1.0),
    (np.float32(1.5), 1.5),
    (np.int8(-3), -3.0),
    (np.array(3.0), 3.0),
    (np.array([1.0]), 1.0),
    (np.array([[4]]), 4.0),
    (torch.tensor(2.0), 2.0),
    (torch.tensor([1.0], requires_grad=True), 1.0),
    (torch.tensor(2, dtype=torch.int8), 2.0),
    (Fraction(1, 4), 0.25),
    (Decimal("0.5"), 0.5),
    (10**5000, math.inf),
    (-(10**5000), -math.inf),
]
OTHERS: list[Any] = [
    None,
    "7",
    b"7",
    bytearray(b"7"),
    memoryview(b"7"),
    np.str_("7"),
    np.array("7"),
    1 + 0j,
    np.complex64(1 + 5j),
    np.complex128(1 + 5j),
    np.array([1 + 0j]),
    np.array([1.0, 2.0]),
    np.array([]),
    np.array([Fraction(1, 2)]),
    np.timedelta64(5, "s"),
    torch.ones(2),
    torch.tensor(1 + 0j),
    torch.tensor(1.0, device="meta"),
    torch.empty(0),
    [1.0],
    {},
    float,
    object(),
]


@pytest.mark.parametrize(("value", "expected"), NUMBERS, ids=range(len(NUMBERS)))
def test_numbers(value: Any, expected: float) -> None:
    number = as_float(value)
    assert number == expected
    assert type(number) is float


@pytest.mark.parametrize("value", OTHERS, ids=range(len(OTHERS)))
def test_what_is_no_number(value: Any) -> None:
    assert as_float(value) is None


def test_not_a_number_is_a_float() -> None:
    number = as_float(torch.tensor(math.nan))
    assert number is not None
    assert math.isnan(number)
