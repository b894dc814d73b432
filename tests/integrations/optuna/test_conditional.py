import torch

from amortes.integrations.optuna.conditional import ConditionalSpace
from amortes.optimiser import Categorical, Float, Int
from amortes.optimiser.design import sample, spread
from amortes.random import generator

SPACE = ConditionalSpace(
    {
        "kind": Categorical(["a", "b", "c"]),
        "kernel": Categorical([0, 1]),
        "gamma": Float(0, 1),
        "n": Int(1, 5),
    },
    conditions={
        "kernel": ("kind", frozenset(["a", "b"])),
        "gamma": ("kernel", frozenset([0, 1])),  # always, if there is a kernel
        "n": ("kind", frozenset(["c"])),
    },
)
DISCRETE = ConditionalSpace(
    {"kind": Categorical(["a", "b"]), "n": Int(1, 5)}, conditions={"n": ("kind", frozenset(["a"]))}
)


def test_activity() -> None:
    assert SPACE.activity({"kind": "a"}) == {
        "kind": True,
        "kernel": True,
        "gamma": None,
        "n": False,
    }
    assert SPACE.activity({}) == {"kind": True, "kernel": None, "gamma": None, "n": None}
    # The default of an inactive parent activates nothing.
    assert SPACE.activity({"kind": "c", "kernel": 0}) == {
        "kind": True,
        "kernel": False,
        "gamma": False,
        "n": True,
    }


def test_filling_in() -> None:
    assert SPACE.fill({"kind": "c"}) == {"kind": "c", "kernel": 1, "gamma": 0.5}
    assert SPACE.fill({"kind": "a", "n": 5}) == {"kind": "a", "n": 3}
    assert SPACE.fill({}) == {}


def test_points_that_differ_in_what_does_not_matter_are_one() -> None:
    X = sample(SPACE, 200, generator(0))
    assert torch.equal(SPACE.project(X), X)
    for x in X:
        config = SPACE.decode(x)
        assert SPACE.fill(config) == config
        torch.testing.assert_close(SPACE.encode(config), x)
    kinds = [SPACE.decode(x)["kind"] for x in X]
    assert min(kinds.count(kind) for kind in "abc") > 40
    gammas = {SPACE.decode(x)["gamma"] for x in X}
    assert len(gammas) > 100


def test_all_points_of_a_small_space() -> None:
    assert DISCRETE.points is not None
    configs = {tuple(DISCRETE.decode(x).values()) for x in DISCRETE.points}
    assert configs == {("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("b", 3)}
    assert len(DISCRETE.points) == len(list(spread(DISCRETE, 0))) == 6
