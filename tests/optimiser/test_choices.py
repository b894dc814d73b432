import json
import math
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import DataError
from amortes.optimiser import Categorical, Ordinal
from amortes.optimiser.choices import Choices, identity
from amortes.random import generator


class Colour(Enum):
    RED = 1
    GREEN = 2


CHOICES: list[list[Any]] = [
    [16, 32, 64],
    ["a", "b"],
    [None, True, 1, "1", [1, 2], {"k": [1]}],
    [0.1, 0.01, 1.0],
    [(1, 2), [1, 2], Colour.RED, Colour.GREEN, None, str, math.sin, frozenset([1]), math.inf],
    list(range(17)),
    [f"choice {i}" for i in range(300)],
]


@pytest.mark.parametrize("kind", [Ordinal, Categorical])
@pytest.mark.parametrize("choices", CHOICES)
def test_every_choice_comes_back(kind: type[Choices], choices: list[Any]) -> None:
    parameter = kind(choices)
    for choice in choices:
        back = parameter.decode(parameter.encode(choice))
        assert back == choice
        assert type(back) is type(choice)


@pytest.mark.parametrize("kind", [Ordinal, Categorical])
@pytest.mark.parametrize("choices", CHOICES)
def test_projecting_is_encoding_what_is_decoded(kind: type[Choices], choices: list[Any]) -> None:
    parameter = kind(choices)
    U = torch.rand(500, parameter.dims, generator=generator(1), dtype=torch.float64)
    U[0], U[1], U[2] = 0.0, 1.0, 0.5  # also ties and ends
    if (
        parameter.dims == 4
    ):  # beyond floating point, which of two at one distance is a matter of luck
        U = U[3:]
    expected = [parameter.encode(parameter.decode(u)) for u in U.tolist()]
    assert parameter.project(U).tolist() == expected


@pytest.mark.parametrize("kind", [Ordinal, Categorical])
def test_uniform_points_are_uniform_choices(kind: type[Choices]) -> None:
    parameter = kind(["a", "b", "c"])
    U = torch.rand(3000, parameter.dims, generator=generator(2), dtype=torch.float64)
    values = [parameter.decode(u) for u in U.tolist()]
    for choice in "abc":
        assert values.count(choice) == pytest.approx(1000, abs=100)  # 3.9 standard deviations


def test_dimensions() -> None:
    assert Ordinal([1, 2, 3]).dims == 1
    assert Categorical([1, 2]).dims == 1
    assert Categorical([1, 2, 3]).dims == 3
    assert Categorical(["x", "y", "z"]).encode("y") == [0.0, 1.0, 0.0]
    assert Categorical(["x", "y"]).encode("y") == [1.0]
    assert Categorical(range(1000)).dims == 4


def test_numbers_of_numpy_are_found_but_bools_are_not_integers() -> None:
    parameter = Categorical([1, 2.5, np.float64(7)])
    assert parameter.check(np.int64(1)) == 1
    assert parameter.check(7) == 7.0
    assert type(parameter.choices[2]) is float
    with pytest.raises(DataError, match="True is not one of"):
        parameter.check(True)


def test_arrays_of_choices() -> None:
    assert Ordinal(np.linspace(0, 1, 3)) == Ordinal([0.0, 0.5, 1.0])
    assert Categorical(np.array(["a", "b"])) == Categorical(["a", "b"])
    assert Categorical(Colour) == Categorical([Colour.RED, Colour.GREEN])


def test_files_have_json_as_it_is_and_anything_else_by_its_place() -> None:
    plain, objects = Categorical(["a", [1]]), Categorical([Colour.RED, "a", (1, 2)])
    assert plain.to_dict() == {"type": "categorical", "choices": ["a", [1]]}
    assert plain.from_json(plain.to_json([1])) == [1]
    assert objects.to_dict() == {
        "type": "categorical",
        "objects": ["<Colour.RED: 1>", "'a'", "(1, 2)"],
    }
    for choice in objects.choices:
        stored = json.loads(json.dumps(objects.to_json(choice)))
        assert objects.from_json(stored) == choice
    for stored in (3, -1, True, "a", None):
        with pytest.raises(DataError, match="is not the place of one of"):
            objects.from_json(stored)


def test_messages_do_not_list_a_thousand_choices() -> None:
    with pytest.raises(DataError, match=r"9, \.\.\.\] \(1000 choices\)") as error:
        Categorical(range(1000)).check("x")
    assert len(str(error.value)) < 100


def test_values_that_are_not_hashable_are_none_of_the_choices() -> None:
    with pytest.raises(DataError, match="is not one of"):
        Categorical(["a", "b"]).check({1})


class Size(StrEnum):
    SMALL = "s"


def test_identity() -> None:
    assert identity(1) == identity(1.0) == identity(np.int8(1))
    assert identity(1) != identity(True)
    assert identity("1") != identity(1)
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})
    assert identity([1, True]) == identity([1.0, True]) != identity([1, 1])
    assert identity((1, 2)) != identity([1, 2])
    assert identity(Size.SMALL) == identity("s")
    with pytest.raises(TypeError, match="unhashable"):
        identity([{1}])
