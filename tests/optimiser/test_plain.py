from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from amortes.errors import ConfigError
from amortes.optimiser import Float
from amortes.optimiser.plain import is_plain, plain, text


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


def test_texts_are_the_same_in_another_process() -> None:
    class Thing:
        pass

    assert text(Thing()) == text(Thing())
    assert text(Size.SMALL) == "<Size.SMALL: 's'>"
    assert text((1, "a")) == "(1, 'a')"
    assert text(Size) == "Size"
    assert text(is_plain) == "is_plain"
    assert text(abs) == "abs"


def test_a_continuum_has_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="no finite list"):
        Float(0, 1).values()
