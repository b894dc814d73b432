import pytest

from amortes import Linear
from amortes.errors import ConfigError
from amortes.lab.formula import parse, parse_linear
from amortes.optimiser.expression import Expression

NAMES = ["flour", "water", "oven time", "a"]


@pytest.mark.parametrize(
    ("text", "coefficients", "upper"),
    [
        ("flour <= 3", {"flour": 1}, 3),
        ("2 * flour + water <= 500", {"flour": 2, "water": 1}, 500),
        ("2flour − 0,5·water ≤ 1e3", {"flour": 2, "water": -0.5}, 1000),
        ("flour >= water", {"flour": -1, "water": 1}, 0),
        ("3 < oven time / 2", {"oven time": -0.5}, -3),
        ("flour * 2 + 1 <= 4 - water + flour", {"flour": 1, "water": 1}, 3),
        ("-a > -.5", {"a": 1}, 0.5),
    ],
)
def test_sums_are_linear(text: str, coefficients: dict[str, float], upper: float) -> None:
    found = parse(text, NAMES)
    assert isinstance(found, Linear)
    assert (dict(found.coefficients), found.upper) == (coefficients, upper)


@pytest.mark.parametrize("text", ["flour * water <= 3", "sqrt(flour) ≤ 2", "a == 1 or water < 2"])
def test_others_are_expressions(text: str) -> None:
    found = parse(text, NAMES)
    assert isinstance(found, Expression)
    assert found.text == text.replace("≤", "<=")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be one comparison"),
        ("flour +", "must be one comparison"),
        ("flour + sugar <= 3", "has sugar, but the parameters are flour, water"),
        ("flour ++ water <= ", "is not a sum"),
        ("1 <= 2", "does not depend"),
        ("flour <= flour", "does not depend"),
        ("__import__('os') <= 1", "is not a sum"),
    ],
)
def test_nonsense_is_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text, NAMES)


def test_only_sums() -> None:
    with pytest.raises(ConfigError, match="is not a sum"):
        parse_linear("flour * water <= 3", NAMES)
