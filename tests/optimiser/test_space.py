import json
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import ConfigError, DataError
from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space
from amortes.optimiser.design import sample, sobol_points
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
    assert MIXED.points is None


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
    assert space.points is not None
    configs = [space.decode(x) for x in space.points]
    assert configs == [{"n": n, "c": c} for n in (1, 2, 3) for c in "abc"]


def test_large_ones_are_not() -> None:
    space = Space({"n": Int(0, FEW)})
    assert space.points is None


def test_a_pool_drops_what_constraints_forbid_and_repeats() -> None:
    pool = [{"n": 1}, {"n": 4}, {"n": 2}, {"n": 1}]
    space = Space({"n": Int(1, 4)}, [Linear({"n": 1.0}, upper=3.0)], pool)
    assert space.pool == ({"n": 1}, {"n": 2}, {"n": 1})
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


BRANCHES = Space(
    {
        "kind": Categorical(
            {
                "a": {"kernel": (kernel := Categorical([0, 1])), "gamma": (gamma := Float(0, 1))},
                "b": {"kernel": kernel, "gamma": gamma},
                "c": {"n": Int(1, 5), "mode": "fast"},
            }
        ),
    }
)
DISCRETE = Space({"kind": Categorical({"a": {"n": Int(1, 5)}, "b": {}})})


def test_configs_have_what_matters() -> None:
    a = {"kind": "a", "kernel": 0, "gamma": 0.25}
    assert BRANCHES.check(a) == a
    assert BRANCHES.check({"kind": "c", "n": 2}) == {"kind": "c", "n": 2, "mode": "fast"}
    with pytest.raises(DataError, match=r"gamma: missing from the config"):
        BRANCHES.check({"kind": "a", "kernel": 0})
    with pytest.raises(DataError, match="n: does not matter where kind is 'a'; leave it out"):
        BRANCHES.check({**a, "n": 3})
    with pytest.raises(DataError, match="mode: does not matter where kind is 'a'"):
        BRANCHES.check({**a, "mode": "fast"})
    deep = Space(
        {"p": Categorical({"u": {"q": Categorical({"v": {"r": Int(1, 2)}, "w": {}})}, "z": {}})}
    )
    with pytest.raises(DataError, match="r: does not matter, as q does not; leave it out"):
        deep.check({"p": "z", "r": 1})


def test_points_that_differ_in_what_does_not_matter_are_one() -> None:
    X = sample(BRANCHES, 200, generator(0))
    assert torch.equal(BRANCHES.project(X), X)
    for x in X:
        config = BRANCHES.decode(x)
        assert BRANCHES.check(config) == config
        torch.testing.assert_close(BRANCHES.encode(config), x)
    kinds = [BRANCHES.decode(x)["kind"] for x in X]
    assert min(kinds.count(kind) for kind in "abc") > 40
    ignored = BRANCHES.encode({"kind": "c", "n": 2})
    changed = ignored.clone()
    changed[BRANCHES.places["gamma"]] = 0.9
    assert BRANCHES.decode(changed) == {"kind": "c", "n": 2, "mode": "fast"}
    assert torch.equal(BRANCHES.project(changed[None])[0], ignored)


def test_all_points_of_a_small_space() -> None:
    assert DISCRETE.points is not None
    configs = [DISCRETE.decode(x) for x in DISCRETE.points]
    assert configs == [*({"kind": "a", "n": n} for n in range(1, 6)), {"kind": "b"}]
    assert len(list(sobol_points(DISCRETE, 0))) == 6


def test_parts_of_configs() -> None:
    assert BRANCHES.relevant({"kind": "c", "gamma": 0.5}) == {"kind": "c"}
    assert BRANCHES.relevant({"gamma": 0.5}) == {"gamma": 0.5}
    assert BRANCHES.lacking({"kind": "a", "gamma": 0.5}) == ["kernel"]
    assert BRANCHES.lacking({"kind": "c", "n": 1}) == []
    assert BRANCHES.lacking({}) == ["kind", "kernel", "gamma", "n"]
    config = {"kind": "c", "n": 2}
    assert BRANCHES.adapted({**config, "kind": "a"}) == {"kind": "a", "kernel": 1, "gamma": 0.5}
    assert BRANCHES.adapted({**config, "n": 4}) == {"kind": "c", "n": 4, "mode": "fast"}


def test_configs_in_files() -> None:
    space = Space({"t": Categorical({(1, 2): {"n": Int(1, 3)}, None: {}}), "seed": 0})
    for config in ({"t": (1, 2), "n": 3, "seed": 0}, {"t": None, "seed": 0}):
        assert space.from_json(space.to_json(config)) == config
    assert space.to_json({"t": None, "seed": 0}) == {"t": 1, "seed": 0}
    with pytest.raises(DataError, match="t: 'x' is not the place"):
        space.from_json({"t": "x"})
