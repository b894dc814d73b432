from dataclasses import dataclass

import numpy as np
import pytest
import torch

from amortes.errors import (
    ConfigError,
    DataError,
    about,
    differences,
    require_int,
    require_least,
    shown,
)


@dataclass
class Sizes:
    width: float
    depth: int = 2


def test_the_field_that_is_too_small_is_named() -> None:
    require_least(Sizes(1), width=1, depth=2)
    for width in (0, float("nan")):
        with pytest.raises(ConfigError, match=f"width: must be at least 1, not {width}"):
            require_least(Sizes(width), width=1, depth=2)
    with pytest.raises(ConfigError, match="depth: must be at least 3, not 2"):
        require_least(Sizes(1), width=1, depth=3)


def test_whole_numbers_of_any_library() -> None:
    assert require_int("n", np.int64(3), 1) == 3
    assert type(require_int("n", torch.tensor(3), 1)) is int
    meta = torch.tensor(3, device="meta")
    for bad in (0, True, 2.0, "3", None, 2**63, np.float64(3), 10**5000, torch.ones(2), meta):
        with pytest.raises(ConfigError, match="n: must be an int of at least 1"):
            require_int("n", bad, 1)


def test_anything_can_be_shown() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown("a") == "'a'"
    assert shown(Broken()) == "something of type Broken that cannot be shown"
    assert (
        shown(10**5000) == "something of type int that cannot be shown"
    )  # Python prints 4,300 digits at most
    assert shown([0] * 1000) == "[" + "0, " * 66 + "0..."


def test_errors_say_what_they_are_about() -> None:
    with pytest.raises(DataError, match=r"^a\.json: no value$"), about("a.json:"):
        raise DataError("no value")
    with pytest.raises(ConfigError, match=r"^pool\[1\]: no value$"), about("pool[1]:", ConfigError):
        raise DataError("no value")
    with pytest.raises(ZeroDivisionError), about("a.json:"):  # not ours
        raise ZeroDivisionError


def test_every_leaf_that_differs_has_a_line() -> None:
    old = {"rate": 0.1, "inner": {"low": 1, "high": 5}, "sizes": [1, 2]}
    new = {"rate": 0.2, "inner": {"low": 1, "high": 9}, "sizes": [1, 2]}
    assert differences(old, old) == []
    assert differences(old, new) == ["rate: 0.1 -> 0.2", "inner.high: 5 -> 9"]
    assert differences(old, new, "{} was {}, is {}")[1] == "inner.high was 5, is 9"
    assert differences({"a": 1}, {"b": {"c": 1}}) == ["a: 1 -> None", "b: None -> {'c': 1}"]
