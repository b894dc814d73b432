import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from amortes.errors import ConfigError
from amortes.integrations.sklearn.translate import BRANCH, Translation
from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Float(0, 1), Float(0, 1)),
        (stats.uniform(2, 3), Float(2, 5)),
        (stats.uniform(loc=-1, scale=0.5), Float(-1, -0.5)),
        (stats.loguniform(1e-4, 1e2), Float(1e-4, 1e2, log=True)),
        (stats.loguniform(1e-4, 1e2, scale=10), Float(1e-3, 1e3, log=True)),
        (stats.reciprocal(1, 8), Float(1, 8, log=True)),
        (stats.randint(1, 9), Int(1, 8)),
        (stats.randint(1, 9, loc=2), Int(3, 10)),
        ([3, 1, 2.5, 1], Ordinal(range(3))),
        (np.array([1, 10, 100]), Ordinal(range(3))),
        (range(4), Ordinal(range(4))),
        (["a", "b", None], Categorical(range(3))),
        ([True, False], Categorical(range(2))),
        (["sqrt", 0.5], Categorical(range(2))),
    ],
)
def test_distributions(given: Any, expected: Any) -> None:
    found = Translation.of({"p": given}).space
    assert found is not None
    assert found.parameters == {"p": expected}


def test_values_of_lists_may_be_anything() -> None:
    objects = [np.ones(2), {"a": math.sin}, object()]
    translation = Translation.of({"p": objects, "n": [8, 2], "one": ["only"], "x": Float(0, 1)})
    found = translation.parameters({"p": 1, "n": 0, "one": 0, "x": 0.5})
    assert found["p"] is objects[1]
    assert found == {"p": objects[1], "n": 2, "one": "only", "x": 0.5}


def test_nothing_varies() -> None:
    translation = Translation.of({"a": [[1]], "b": ["x"]})
    assert translation.space is None
    assert translation.constants == {"a": [1], "b": "x"}


def test_several_dicts_are_branches() -> None:
    tables = [{"kernel": ["rbf"], "C": Float(0, 1)}, {"kernel": ["poly"], "degree": Int(1, 3)}]
    translation = Translation.of(tables)
    assert translation.space is not None
    config = translation.space.check({BRANCH: 1, "1: degree": 2})
    assert translation.parameters(config) == {"kernel": "poly", "degree": 2}
    config = translation.space.check({BRANCH: 0, "0: C": 0.5})
    assert translation.parameters(config) == {"kernel": "rbf", "C": 0.5}


def test_a_space_stays_what_it_is() -> None:
    space = Space({"x": Float(0, 1), "c": Categorical(["a", "b"])}, [Linear({"x": 1}, 0.5)])
    translation = Translation.of(space)
    assert translation.space is space
    assert translation.parameters({"x": 0.1, "c": "b"}) == {"x": 0.1, "c": "b"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3, "expected a dict of distributions by name, a list of such dicts or a Space, not 3"),
        ([], "expected a dict of distributions"),
        ([3], "expected a dict of distributions"),
        ({"a": 3}, "a: expected Float, Int, .*, not 3"),
        ({"a": "abc"}, "a: expected Float, Int, .*, not 'abc'"),
        ({"a": []}, "a: the list of values is empty"),
        ({"a": stats.norm(0, 1)}, "a: of scipy.stats, uniform, .* not norm"),
        ({"a": stats.loguniform(1, 2, loc=3)}, "a: of scipy.stats, .* not loguniform"),
    ],
)
def test_what_is_not_understood(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Translation.of(given)
