from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space, Trial
from amortes.optimiser.summary import (
    aligned,
    best_text,
    count_trials,
    describe_parameter,
    describe_space,
    next_step,
)


def test_parameters() -> None:
    assert describe_parameter(Float(1e-5, 0.1, log=True)) == "1e-05 to 0.1, log"
    assert describe_parameter(Int(1, 8)) == "1 to 8"
    assert describe_parameter(Int(1, 9, step=2)) == "1 to 9, step 2"
    assert describe_parameter(Float(0, 1, step=0.25)) == "0 to 1, step 0.25"
    assert describe_parameter(Categorical(["relu", None])) == "relu | None"
    assert describe_parameter(Ordinal(range(20))).endswith("7 | ... 12 more")
    assert describe_parameter("x" * 100).endswith("…")


def test_spaces() -> None:
    space = Space(
        {"a": Int(1, 8), "b": Int(1, 8), "k": 3}, [Linear({"a": 1.0, "b": 1.0}, upper=9.0)]
    )
    assert describe_space(space) == "a: 1 to 8; b: 1 to 8; k: 3; 1 constraint"
    pool = Space({"a": Int(1, 8)}, pool=[{"a": 1}, {"a": 5}])
    assert describe_space(pool) == "a: 1 to 8; a pool of 2"
    many = Space({f"x{i}": Float(0, 1) for i in range(30)})
    assert describe_space(many).endswith("x7: 0 to 1; ... 22 more")
    branches = Space({"m": Categorical({"u": {"n": Int(1, 8)}, "v": {}, "w": {"n": Int(1, 8)}})})
    assert describe_space(branches) == "m: u | v | w; n: 1 to 8 (if m is u | w)"
    describe_space(Space({"\ud800": Float(0, 1)})).encode()


def test_trials() -> None:
    trials = [
        Trial(0, {"a": 1}, "failed"),
        Trial(1, {"a": 2}, "done", 0.5),
        Trial(2, {"a": 3}, "done", 1.0),
        Trial(3, {"a": 4}),
    ]
    assert count_trials(trials) == "2 done, 1 failed, 1 pending"
    assert count_trials([]) == "none"
    assert best_text(trials[1]) == "0.5, trial 1: a=2"
    assert next_step(trials, 3).startswith("tell(trial, value) for trial 3, or ask()")
    assert "trials 3, 4, or" in next_step([*trials, Trial(4, {})], 3)
    assert next_step(trials[:3], 5).startswith("ask() for trial 4 of the 5")
    assert "recommend()" in next_step(trials[:3], 3)


def test_alignment() -> None:
    assert aligned([("a", "x"), ("long", "y")]) == "  a     x\n  long  y"
