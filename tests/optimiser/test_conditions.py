from typing import Any

import pytest

from amortes.errors import ConfigError
from amortes.optimiser import Categorical, Float, Int, Ordinal, Space
from amortes.optimiser.conditions import (
    Condition,
    activity,
    check_conditions,
    flatten,
)

SHARED = Float(1e-3, 1e3, log=True)
NESTED: dict[str, Any] = {
    "x": Float(0, 1),
    "model": Categorical(
        {
            "svm": {
                "C": SHARED,
                "kernel": Categorical({"rbf": {"gamma": Float(0, 1)}, "lin": None}),
            },
            "logistic": {"C": SHARED, "solver": "lbfgs"},
            "bayes": {},
        }
    ),
    "seed": 3,
}


def test_branches_become_conditions() -> None:
    flat, conditions = flatten(NESTED)
    assert flat == {
        "x": Float(0, 1),
        "model": Categorical(["svm", "logistic", "bayes"]),
        "C": SHARED,
        "kernel": Categorical(["rbf", "lin"]),
        "gamma": Float(0, 1),
        "solver": "lbfgs",
        "seed": 3,
    }
    assert list(flat) == ["x", "model", "C", "kernel", "gamma", "solver", "seed"]
    assert conditions == {
        "C": Condition("model", ("svm", "logistic")),
        "kernel": Condition("model", ("svm",)),
        "gamma": Condition("kernel", ("rbf",)),
        "solver": Condition("model", ("logistic",)),
    }
    assert Space(NESTED) == Space(flat, conditions=conditions)


def branch(child: Any, other: Any = None) -> dict[str, Any]:
    return {"m": Categorical({"a": {"c": child}, "b": {} if other is None else {"c": other}})}


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (branch(Float(0, 1), Float(0, 2)), "c: is Float.* in one branch of m and Float.* in anoth"),
        ({**branch(Float(0, 1)), "c": Int(1, 2)}, "c: occurs more than once in the space"),
        (
            {**branch(Float(0, 1)), "n": Categorical({"a": {"c": Float(0, 1)}, "b": {}})},
            "more than",
        ),
        ({"m": Categorical({"a": {"m": Float(0, 1)}, "b": {}})}, "m: occurs more than once"),
        (branch((0, 1)), r"c: expected Float, .*, not \(0, 1\)"),
    ],
)
def test_names_that_clash(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Space(parameters)


def test_branches_are_dicts() -> None:
    with pytest.raises(ConfigError, match="choice 'a' must map to a dict of the parameters"):
        Categorical({"a": Float(0, 1), "b": {}})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="needs at least two choices"):
        Categorical({"a": {"x": Float(0, 1)}})


FLAT: dict[str, Any] = {"x": Float(0, 1), "n": Int(1, 5), "c": Ordinal([1, 2]), "k": 3}


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ([], "conditions: expected a dict"),
        ({"z": Condition("n", (1,))}, "no parameter 'z'"),
        ({"c": ("n", (1,))}, "c: expected a Condition with values"),
        ({"c": Condition("n", ())}, "c: expected a Condition with values"),
        ({"c": Condition("x", (0.5,))}, "'x', which is not a parameter with a finite number"),
        ({"c": Condition("k", (3,))}, "'k', which is not a parameter with a finite number"),
        ({"n": Condition("c", (1,))}, "n: depends on c, which must come before it"),
        ({"c": Condition("n", (1, 6))}, r"c: depends on n: 6 is outside 1\.\.5"),
    ],
)
def test_conditions_that_make_no_sense(conditions: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_conditions(conditions, FLAT)


CHAIN = {
    "kernel": Condition("kind", ("a", "b")),
    "gamma": Condition("kernel", (0, 1)),  # always, if there is a kernel
    "n": Condition("kind", ("c",)),
}


def test_activity() -> None:
    names = dict.fromkeys(("kind", "kernel", "gamma", "n"))
    assert activity(names, CHAIN, {"kind": "a"}) == {
        "kind": True,
        "kernel": True,
        "gamma": None,
        "n": False,
    }
    unknown = {"kind": True, "kernel": None, "gamma": None, "n": None}
    assert activity(names, CHAIN, {}) == unknown
    # The value of an inactive parent activates nothing.
    assert activity(names, CHAIN, {"kind": "c", "kernel": 0}) == {
        "kind": True,
        "kernel": False,
        "gamma": False,
        "n": True,
    }


def test_numbers_of_configs() -> None:
    # svm: 2 * (3 + 1) with and without gamma; logistic: 2; bayes: 1; times three values of x.
    C, x = Int(1, 2), Int(1, 3)
    space = Space(
        {
            "x": x,
            "model": Categorical(
                {
                    "svm": {"C": C, "kernel": Categorical({"rbf": {"g": Int(1, 3)}, "lin": {}})},
                    "logistic": {"C": C},
                    "bayes": {},
                }
            ),
        }
    )
    assert space.points is not None
    assert len(space.points) == 3 * (8 + 2 + 1)
    many = Space({f"m{i}": Categorical({"a": {f"n{i}": Int(1, 9)}, "b": {}}) for i in range(3)})
    assert many.points is not None
    assert len({tuple(x.tolist()) for x in many.points}) == 1000
    assert Space(NESTED).points is None
