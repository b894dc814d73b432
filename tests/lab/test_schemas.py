from typing import Any

import pytest
from pydantic import ValidationError

from amortes.lab.schemas import Result, Tell, decimal


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("1.5", "1.5"),
        (" 1,5 ", "1.5"),
        ("−2", "-2"),
        ("", None),
        ("1,000.5", "1,000.5"),
        ("1,2,3", "1,2,3"),
        (2, 2),
        (None, None),
    ],
)
def test_numbers_as_people_type_them(typed: Any, expected: Any) -> None:
    assert decimal(typed) == expected


@pytest.mark.parametrize("value", ["1,000.5", "nan", "inf", "1e999", float("nan"), [], "1 2"])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValidationError):
        Result(value=value)


def test_an_empty_field_is_nothing() -> None:
    assert Result.model_validate({"value": "", "cost": " "}) == Result()


def test_unknown_fields_are_mistakes() -> None:
    with pytest.raises(ValidationError):
        Tell.model_validate({"value": 1, "costs": 2})
