import json
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import ConfigError, DataError
from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space
from amortes.optimiser.space import FEW
from amortes.random import generator

MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "fixed": "adam",
        "layers": Int(1, 8),
        "act": Categorical(["relu", None, [1, 2], {"k": True}]),
        "batch": Ordinal([16, 32, 64]),
        "bias": Categorical([True, False]),
        "zero": 0,
    },
    [Linear({"layers": 1.0}, upper=6.0)],
)


def test_points() -> None:
    assert MIXED.d == 1 + 1 + 4 + 1 + 1
    assert list(MIXED.free) == ["lr", "layers", "act", "batch", "bias"]
    assert MIXED.fixed == {"fixed": "adam", "zero": 0}
    assert MIXED.places["act"] == slice(2, 6)
    assert MIXED.count is None


def test_configs_come_back() -> None:
    X = MIXED.project(torch.rand(100, MIXED.d, generator=generator(0), dtype=torch.float64))
    for x in X:
        config = MIXED.decode(x)
        assert list(config) == list(MIXED.parameters)
        torch.testing.assert_close(MIXED.encode(config), x)
        again = MIXED.decode(MIXED.encode(config))
        assert again.pop("lr") == pytest.approx(config.pop("lr"), rel=1e-12)
        assert again == config


def test_projecting_is_idempotent_and_what_decoding_sees() -> None:
    U = torch.rand(200, MIXED.d, generator=generator(1), dtype=torch.float64)
    X = MIXED.project(U)
    torch.testing.assert_close(MIXED.project(X), X)
    for u, x in zip(U, X, strict=True):
        torch.testing.assert_close(MIXED.encode(MIXED.decode(u)), x)


@pytest.mark.parametrize(
    "space",
    [
        MIXED,
        Space({"a": Int(1, 3), "b": 2.5}, pool=[{"a": 1}, {"a": 3, "b": 2.5}]),
        Space({"x": Float(0, 1), "n": None}),
        Space({"x": Float(0, 1, step=0.1), "n": Int(0, 9, step=3)}),
    ],
)
def test_a_space_survives_json(space: Space) -> None:
    description = json.loads(json.dumps(space.to_dict()))
    again = Space.from_dict(description)
    assert again == space
    assert again.to_dict() == space.to_dict()


def test_a_broken_description_is_named() -> None:
    description: dict[str, Any] = {"parameters": {"lr": {"type": "float", "low": 2, "high": 1}}}
    with pytest.raises(ConfigError, match="lr: Float: low must be below high"):
        Space.from_dict(description)
    with pytest.raises(ConfigError, match="not the description of a space"):
        Space.from_dict({})


def test_constants_are_optional_in_configs() -> None:
    space = Space({"x": Float(0, 1), "seed": 3})
    assert space.check({"x": 0.5}) == {"x": 0.5, "seed": 3}
    assert space.check({"x": 0.5, "seed": 3.0}) == {"x": 0.5, "seed": 3}
    assert space == Space({"x": Float(0, 1), "seed": np.int64(3)})


def test_small_finite_spaces_are_listed() -> None:
    space = Space(
        {"n": Int(1, 4), "c": Categorical(["a", "b", "c"])}, [Linear({"n": 1.0}, upper=3.0)]
    )
    assert space.count == 12
    assert space.points is not None
    configs = [space.decode(x) for x in space.points]
    assert configs == [{"n": n, "c": c} for n in (1, 2, 3) for c in "abc"]


def test_large_ones_are_not() -> None:
    space = Space({"n": Int(0, FEW)})
    assert space.count == FEW + 1
    assert space.points is None


def test_a_pool_drops_what_constraints_forbid_and_repeats() -> None:
    pool = [{"n": 1}, {"n": 4}, {"n": 2}, {"n": 1}]
    space = Space({"n": Int(1, 4)}, [Linear({"n": 1.0}, upper=3.0)], pool)
    assert space.pool == ({"n": 1}, {"n": 2}, {"n": 1})
    assert space.count == 2
    assert space.points is not None
    assert [space.decode(x)["n"] for x in space.points] == [1, 2]


def test_finite_but_infeasible() -> None:
    space = Space({"n": Int(1, 4)}, [Linear({"n": 1.0}, upper=0.0)])
    with pytest.raises(ConfigError, match="none of the 4 configs"):
        _ = space.points


def test_coordinates_of_some_values() -> None:
    values = {"act": None, "lr": 1e-3, "bias": False}
    coordinates = MIXED.coordinates(values)
    assert set(coordinates) == {0, 2, 3, 4, 5, 7}
    x = torch.rand(MIXED.d, generator=generator(0), dtype=torch.float64)
    for place, u in coordinates.items():
        x[place] = u
    config = MIXED.decode(x)
    assert config["lr"] == pytest.approx(1e-3)
    assert (config["act"], config["bias"]) == (None, False)
    assert all(0 <= u <= 1 for v in (1e-5, 1e-1) for u in MIXED.coordinates({"lr": v}).values())
    with pytest.raises(DataError, match="outside"):
        MIXED.coordinates({"lr": 1.0})


def test_only_discrete_spaces_are_projected() -> None:
    assert Space({"x": Float(0, 1)}).domain().project is None
    assert Space({"x": Float(0, 1), "n": Int(1, 3)}).domain().project is not None
