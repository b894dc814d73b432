import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Linear, Optimizer, Ordinal, Space, Trial
from amortes.optimiser.insight import (
    aligned,
    best_text,
    count_trials,
    describe_parameter,
    describe_space,
    next_step,
)

SPACE = {"x": Float(0, 1), "n": Int(1, 5)}


def told(network: KernelNetwork) -> Optimizer:
    opt = Optimizer(SPACE, network=network, acquisition="logei")
    for i in range(5):
        opt.tell({"x": i / 4, "n": 1 + i}, (i / 4 - 0.4) ** 2)
    return opt


def test_an_optimizer_is_readable(network: KernelNetwork) -> None:
    opt = Optimizer(SPACE, network=network)
    assert "trials  none" in repr(opt)
    assert "ask() for trial 1 of the 3" in repr(opt)
    assert "none" in opt._repr_html_()
    opt = told(network)
    assert "x: 0 to 1; n: 1 to 5" in repr(opt)
    assert "best    0.01, trial 2: x=0.5, n=3" in repr(opt)
    assert "recommendation" not in repr(opt)
    assert opt._repr_html_().count("recommendation") == 1
    assert opt.recommend().text in repr(opt)  # it is known now
    opt.tell(opt.ask(), 1.0)
    assert "recommendation" not in repr(opt)


def test_trials_are_readable(network: KernelNetwork) -> None:
    opt = Optimizer(SPACE, network=network)
    done = opt.tell({"x": 0.5, "n": 2}, 1.25, cost=3.0)
    failed = opt.tell({"x": 0.25, "n": 2}, failed=True, reason="<out of memory>")
    assert repr(done) == "Trial(0: 1.25, cost 3; x=0.5, n=2)"
    assert repr(failed) == "Trial(1: failed (<out of memory>); x=0.25, n=2)"
    assert "&lt;out of memory&gt;" in failed._repr_html_()
    opt.enqueue({"x": 0.75, "n": 3})
    assert repr(opt.ask()) == "Trial(2: pending; x=0.75, n=3)"


def test_a_recommendation_is_the_same_again_and_nobody_elses(network: KernelNetwork) -> None:
    opt, other = told(network), told(network)
    first = opt.recommend()
    first.config["x"] = -1.0
    assert opt.recommend() == other.recommend()
    assert opt.recommend(level=0.5).upper < opt.recommend(level=0.9).upper
    before = opt.recommend()
    for x in (0.9, 0.85):
        opt.tell({"x": x, "n": 5}, -5.0)
        other.tell({"x": x, "n": 5}, -5.0)
    assert opt.recommend() == other.recommend()
    assert opt.recommend() != before
    assert opt.recommend().config["x"] == pytest.approx(0.9, abs=0.11)


@pytest.mark.parametrize("acquisition", ["jes", "logei", "ei"])
def test_gains_are_what_ask_goes_by(network: KernelNetwork, acquisition: str) -> None:
    pool = [{"x": i / 10, "n": n} for i in range(11) for n in (1, 3, 5)]
    opt = Optimizer(Space(SPACE, pool=pool), "maximize", network=network, acquisition=acquisition)
    for i in (0, 7, 13, 20, 31):
        opt.tell(pool[i], float(pool[i]["x"]) - abs(pool[i]["n"] - 3))
    opt.ask()  # trials under way count
    taken = [trial.config for trial in opt.trials]
    free = [config for config in pool if config not in taken]
    gains = opt.gains(free)
    assert min(gains) >= 0.0
    chosen = opt.ask().config
    assert gains[free.index(chosen)] == pytest.approx(max(gains))


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
