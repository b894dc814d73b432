from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from amortes.errors import ConfigError
from amortes.optimiser import Float
from amortes.optimiser.parameter import copied, identity, plain, text


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "x", [1, [2]], {"a": None}])
def test_json_values_are_plain(value: Any) -> None:
    assert plain(value, "v") is value


class Size(StrEnum):
    SMALL = "s"


@pytest.mark.parametrize(
    "value", [(1, 2), {1: 2}, float("nan"), object(), [(1,)], np.ones(2), Size.SMALL, [Size.SMALL]]
)
def test_other_values_are_not(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"v .* is not a JSON value"):
        plain(value, "v")


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


def test_texts_are_the_same_in_another_process() -> None:
    class Thing:
        pass

    assert text(Thing()) == text(Thing())
    assert text(Size.SMALL) == "<Size.SMALL: 's'>"
    assert text((1, "a")) == "(1, 'a')"
    assert text(Size) == "Size"
    assert text(identity) == "identity"
    assert text(abs) == "abs"


def test_copies_share_nothing_that_can_be_changed() -> None:
    thing = object()
    value = {"a": [1, {"b": thing}]}
    again = copied(value)
    assert again == value
    again["a"][1]["b"] = None
    assert value["a"][1] == {"b": thing}


def test_a_continuum_has_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="no finite list"):
        Float(0, 1).values()
