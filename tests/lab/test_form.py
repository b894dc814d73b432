from typing import Any

import pytest

from amortes import Categorical, Float, Int, Ordinal
from amortes.lab.errors import FormError
from amortes.lab.form import build_space
from amortes.lab.schemas import SpaceForm

X = {"type": "float", "name": "x", "low": 0, "high": 1}
KIND = {"type": "categorical", "name": "kind", "choices": ["a", "b", "c"]}


def build(*parameters: dict[str, Any], constraints: list[Any] | None = None) -> Any:
    form = {"parameters": list(parameters), "constraints": constraints or []}
    return build_space(SpaceForm.model_validate(form))


def test_every_kind_of_parameter() -> None:
    space = build(
        {**X, "low": "0,5", "log": True},
        {"type": "float", "name": "step", "low": 0, "high": 1, "step": 0.25},
        {"type": "int", "name": "n", "low": 2, "high": 8, "step": "2"},
        KIND,
        {"type": "ordinal", "name": "size", "choices": [16, 32, 64]},
        {"type": "fixed", "name": "seed", "value": 3},
        {**X, "name": "only", "when": {"parameter": "kind", "values": ["a", "c"]}},
        constraints=["x + 2 * step <= 2", "x * step < 0.5", {"coefficients": {"n": 1}, "upper": 7}],
    )
    assert space.free["x"] == Float(0.5, 1, log=True)
    assert space.free["step"] == Float(0, 1, step=0.25)
    assert space.free["n"] == Int(2, 8, step=2)
    assert isinstance(space.free["kind"], Categorical)
    assert isinstance(space.free["size"], Ordinal)
    assert space.fixed == {"seed": 3}
    assert space.conditions["only"].values == ("a", "c")
    base = {"x": 0.5, "step": 0.5, "n": 4, "size": 16}
    assert space.allows({**base, "kind": "b"})
    assert space.allows({**base, "kind": "a", "only": 0.5})
    assert not space.allows({**base, "n": 8, "kind": "b"})
    assert not space.allows({**base, "x": 1.0, "kind": "b"})  # the product is 0.5


@pytest.mark.parametrize(
    ("parameters", "constraints", "at", "message"),
    [
        ([{**X, "high": 0}], [], "parameters.0.high", "above the lowest, which is 0"),
        ([{**X, "log": True}], [], "parameters.0.low", "above 0"),
        ([X, X], [], "parameters.1.name", "already a parameter x"),
        ([{**X, "name": "Value"}], [], "parameters.0.name", "column of results"),
        ([{**KIND, "choices": ["a"]}], [], "parameters.0.choices", "at least two"),
        ([{**KIND, "choices": ["a", "a"]}], [], "parameters.0.choices", "only once"),
        ([{**X, "step": 2}], [], "parameters.0.step", "at most the distance"),
        ([{**X, "step": -1}], [], "parameters.0.step", "above 0"),
        ([{**X, "low": 0.1, "log": True, "step": 0.1}], [], "parameters.0.step", "magnitude"),
        ([{**X, "low": -1e308, "high": 1e308}], [], "parameters.0", "finite amount"),
        ([{"type": "fixed", "name": "s", "value": 1}], [], "parameters", "Nothing varies"),
        ([X], ["x + y <= 1"], "constraints.0", "has y"),
        ([X], ["x"], "constraints", "must be a comparison"),
        ([X], [{"coefficients": {}, "upper": 1}], "constraints.0", "coefficients"),
        ([X], ["x <= -5"], "constraints", "no values satisfy all of these limits"),
        ([X], ["x * x < -1"], "constraints", "no values satisfy all of these limits"),
        (
            [{**X, "when": {"parameter": "kind", "values": ["a"]}}, KIND],
            [],
            "parameters.0.when",
            "must be a choice that stands above x",
        ),
        (
            [KIND, {**X, "when": {"parameter": "kind", "values": ["z"]}}],
            [],
            "parameters.1.when",
            "z is not one of the choices of kind: a, b, c",
        ),
    ],
)
def test_a_mistake_names_its_field(
    parameters: list[dict[str, Any]], constraints: list[Any], at: str, message: str
) -> None:
    with pytest.raises(FormError, match=message) as caught:
        build(*parameters, constraints=constraints)
    assert [problem.at for problem in caught.value.problems] == [at]


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(FormError) as caught:
        build({**X, "high": -1}, {**KIND, "choices": []}, constraints=["x + <= 3"])
    places = [problem.at for problem in caught.value.problems]
    assert places == ["parameters.0.high", "parameters.1.choices", "constraints.0"]
