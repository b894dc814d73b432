import pytest
import torch

from amortes.errors import DataError
from amortes.optimiser import Categorical, Float, Int
from amortes.optimiser.design import sample, spread
from amortes.optimiser.layout import Layout
from amortes.optimiser.space import Space
from amortes.random import generator

SPACE = Space(
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
    assert SPACE.check(a) == a
    assert SPACE.check({"kind": "c", "n": 2}) == {"kind": "c", "n": 2, "mode": "fast"}
    with pytest.raises(DataError, match=r"gamma: missing from the config"):
        SPACE.check({"kind": "a", "kernel": 0})
    with pytest.raises(DataError, match="n: does not matter where kind is 'a'; leave it out"):
        SPACE.check({**a, "n": 3})
    with pytest.raises(DataError, match="mode: does not matter where kind is 'a'"):
        SPACE.check({**a, "mode": "fast"})
    deep = Space(
        {"p": Categorical({"u": {"q": Categorical({"v": {"r": Int(1, 2)}, "w": {}})}, "z": {}})}
    )
    with pytest.raises(DataError, match="r: does not matter, as q does not; leave it out"):
        deep.check({"p": "z", "r": 1})


def test_points_that_differ_in_what_does_not_matter_are_one() -> None:
    X = sample(SPACE, 200, generator(0))
    assert torch.equal(SPACE.project(X), X)
    for x in X:
        config = SPACE.decode(x)
        assert SPACE.check(config) == config
        torch.testing.assert_close(SPACE.encode(config), x)
    kinds = [SPACE.decode(x)["kind"] for x in X]
    assert min(kinds.count(kind) for kind in "abc") > 40
    ignored = SPACE.encode({"kind": "c", "n": 2})
    changed = ignored.clone()
    changed[SPACE.places["gamma"]] = 0.9
    assert SPACE.decode(changed) == {"kind": "c", "n": 2, "mode": "fast"}
    assert torch.equal(SPACE.project(changed[None])[0], ignored)


def test_all_points_of_a_small_space() -> None:
    assert DISCRETE.points is not None
    configs = [DISCRETE.decode(x) for x in DISCRETE.points]
    assert configs == [*({"kind": "a", "n": n} for n in range(1, 6)), {"kind": "b"}]
    assert len(list(spread(DISCRETE, 0))) == 6


def test_parts_of_configs() -> None:
    assert SPACE.relevant({"kind": "c", "gamma": 0.5}) == {"kind": "c"}
    assert SPACE.relevant({"gamma": 0.5}) == {"gamma": 0.5}
    assert SPACE.lacking({"kind": "a", "gamma": 0.5}) == ["kernel"]
    assert SPACE.lacking({"kind": "c", "n": 1}) == []
    assert SPACE.lacking({}) == ["kind", "kernel", "gamma", "n"]
    config = {"kind": "c", "n": 2}
    assert SPACE.adapted({**config, "kind": "a"}) == {"kind": "a", "kernel": 1, "gamma": 0.5}
    assert SPACE.adapted({**config, "n": 4}) == {"kind": "c", "n": 4, "mode": "fast"}


def test_configs_in_files() -> None:
    layout = Layout({"t": Categorical({(1, 2): {"n": Int(1, 3)}, None: {}}), "seed": 0})
    for config in ({"t": (1, 2), "n": 3, "seed": 0}, {"t": None, "seed": 0}):
        assert layout.from_json(layout.to_json(config)) == config
    assert layout.to_json({"t": None, "seed": 0}) == {"t": 1, "seed": 0}
    with pytest.raises(DataError, match="t: 'x' is not the place"):
        layout.from_json({"t": "x"})
