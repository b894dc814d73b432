from typing import Any

import pytest

from amortes import Categorical, Float, Int, Linear, Optimizer, Ordinal, Space
from amortes.lab import words
from amortes.lab.formula import parse
from amortes.optimiser.explanation import Explanation, Neighbour


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.123456, "−0.1235"),
        (90.90333855, "90.9"),
        (1234.56, "1235"),
        (123456.7, "123457"),
        (1e-7, "1e−07"),
        (2.5e12, "2.5e+12"),
        (0.0, "0"),
        (0.00012345, "0.0001234"),
        (True, "True"),
        (12345678, "12345678"),
        ("rye", "rye"),
        (None, "None"),
    ],
)
def test_numbers(value: Any, text: str) -> None:
    assert words.number_text(value) == text


@pytest.mark.parametrize("value", [0.1, 3.14159, 250.0, 1e-3, 99999.5, 7e5, -42.5])
def test_numbers_are_right_to_their_digits(value: float) -> None:
    shown = float(words.number_text(value).replace("−", "-"))
    assert shown == pytest.approx(value, rel=5e-4)


def test_intervals_show_that_their_ends_differ() -> None:
    assert words.interval_text(1.0, 2.0) == "1 to 2"
    assert words.interval_text(1.00001, 1.00002) == "1.00001 to 1.00002"


def test_ranges() -> None:
    assert words.range_text(Float(0, 1.5)) == "0 to 1.5"
    assert words.range_text(Float(0.01, 10, log=True)) == "0.01 to 10, by orders of magnitude"
    assert words.range_text(Float(0, 1, step=0.25)) == "0 to 1 in steps of 0.25"
    assert words.range_text(Int(1, 9)) == "1 to 9"
    assert words.range_text(Int(0, 8, step=2)) == "0 to 8 in steps of 2"
    assert words.range_text(Ordinal([16, 32])) == "16, 32"


def test_constraints_can_be_typed_in_again() -> None:
    names = {"x": Float(0, 1), "y": Float(0, 1)}
    limits: list[Any] = [Linear({"x": 2.0, "y": -0.123456789}, 0.5), "x * y < 0.25"]
    space = Space(names, constraints=limits)
    texts = words.constraint_text(space)
    assert texts == ["2 * x − 0.123456789 * y ≤ 0.5", "x * y < 0.25"]
    again = Space(names, constraints=[parse(text, list(names)) for text in texts])
    assert again.to_dict() == space.to_dict()


def test_conditions() -> None:
    space = Space(
        {"kind": Categorical({"a": {"x": Float(0, 1)}, "b": {"x": Float(0, 1)}, "c": {}})}
    )
    assert words.condition_text(space, "x") == "if kind is a or b"
    assert words.condition_text(space, "kind") == ""


def test_reasons() -> None:
    opt = Optimizer({"x": Float(0, 1)})
    first = opt.explain(opt.ask())
    assert "overview" in words.reason_text(first, first.kind)
    assert words.reason_text(first, "own") == "Your own choice."
    for value in (1.0, 0.5, 0.7, 0.6, 0.65):
        opt.tell(opt.ask(), value)
    later = opt.explain(opt.ask())
    near = Neighbour(3, 0.6, 0.01, "lengthscales", {"x": (0.1, 0.2)})
    known: dict[str, Any] = vars(later) | {"nearest": near, "improvement": 0.25}
    explanation = Explanation(**known)
    assert "Repeats trial 3, which gave 0.6" in words.reason_text(explanation, "repeat")
    assert "Explores" in words.reason_text(explanation, "explore")
    assert "0.6 of trial 3, differs most in x" in words.reason_text(explanation, "explore")
    assert "improve on the best, by 0.25 on average" in words.reason_text(explanation, "exploit")


@pytest.mark.parametrize(
    ("gain", "spread", "n", "verdict"),
    [
        (1.0, 1.0, 2, "yes"),
        (1.0, 0.0, 9, "yes"),
        (0.5, 1.0, 9, "yes"),
        (0.01, 1.0, 9, "maybe"),
        (0.0005, 1.0, 9, "no"),
    ],
)
def test_whether_to_go_on(gain: float, spread: float, n: int, verdict: str) -> None:
    said, sentence = words.worth_text(gain, spread, "g", n)
    assert said == verdict
    assert sentence
