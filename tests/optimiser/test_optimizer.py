import itertools
import logging
import math
import os
import random
import signal
import threading
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import (
    AmortesWarning,
    Categorical,
    Float,
    Int,
    Linear,
    Optimizer,
    Space,
    Trial,
)
from amortes.optimiser.space import Config

MIXED = {
    "lr": Float(1e-5, 1e-1, log=True),
    "layers": Int(1, 8),
    "act": Categorical(["relu", "gelu", "tanh"]),
    "seed": 7,
}


def loss(config: Config) -> float:
    bonus = {"relu": 0.0, "gelu": -0.5, "tanh": 0.5}[config["act"]]
    lr, layers = float(config["lr"]), int(config["layers"])
    return (math.log10(lr) + 3) ** 2 + 0.3 * abs(layers - 5) + bonus


def optimizer(network: KernelNetwork, **changes: Any) -> Optimizer:
    settings: dict[str, Any] = {"space": MIXED, "acquisition": "logei", "initial": 4}
    return Optimizer(network=network, **(settings | changes))


def advance(opt: Optimizer, n: int) -> list[Config]:
    """Ask and tell n times."""
    trials: list[Trial] = []
    for _ in range(n):
        trials.append(opt.ask())
        opt.tell(trials[-1], loss(trials[-1].config))
    return [trial.config for trial in trials]


def test_the_best_result_is_one_the_space_allows(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)}, [Linear({"x": 1.0, "y": 1.0}, upper=1.0)])
    opt = optimizer(network, space=space)
    opt.tell({"x": 0.9, "y": 0.9}, -5.0)
    assert opt.best.value == -5.0
    opt.tell({"x": 0.1, "y": 0.2}, 2.0)
    opt.tell({"x": 0.2, "y": 0.2}, 1.0)
    assert opt.best.value == 1.0


def test_a_constraint_that_only_evaluations_tell(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"x": Float(0, 1), "y": Float(0, 1)})
    for _ in range(20):
        trial = opt.ask()
        x, y = trial["x"], trial["y"]
        opt.tell(trial, (x - 0.3) ** 2 + (y - 0.6) ** 2, violation=0.5 - x)
    assert opt.best["x"] >= 0.5
    assert opt.best.value == pytest.approx(0.04, abs=0.01)
    assert opt.recommend().config["x"] > 0.45
    assert sum(trial.status == "done" for trial in opt.trials[10:]) >= 7
    again = Optimizer.from_state(opt.state, network=network)
    assert again.ask().config == opt.ask().config
    with pytest.raises(DataError, match="violation must be a finite number"):
        opt.tell(opt.ask(), 1.0, violation=math.nan)


def test_recommendations_do_not_mind_accidents(network: KernelNetwork) -> None:
    rng = random.Random(0)
    opt = optimizer(network, space={"x": Float(0, 1), "y": Float(0, 1)})
    for _ in range(24):
        trial = opt.ask()
        value = (trial["x"] - 0.3) ** 2 + (trial["y"] - 0.7) ** 2
        opt.tell(trial, math.nan if rng.random() < 0.4 else value)
    found = opt.recommend().config
    assert (found["x"] - 0.3) ** 2 + (found["y"] - 0.7) ** 2 < 2e-4


def test_gains_of_any_size(network: KernelNetwork) -> None:
    gains = []
    for scale in (1.0, 1e90, 1e-60):
        opt = optimizer(network, space={"x": Float(0, 1)})
        for x in (0.1, 0.4, 0.8):
            opt.tell({"x": x}, scale * (x - 0.5) ** 2)
        gains.append(opt.expected_gain() / scale)
    assert gains[0] > 0
    assert gains == pytest.approx([gains[0]] * 3, rel=1e-6)


def test_another_default_device(network: KernelNetwork) -> None:
    opt = optimizer(network, space=MIXED)
    try:
        torch.set_default_device("meta")
        advance(opt, 6)
        other = optimizer(network, space=MIXED)
        advance(other, 6)
        assert [t.config for t in other.trials] == [t.config for t in opt.trials]
        assert opt.best.value is not None
        opt.recommend()
        opt.importance()
        assert Optimizer.from_state(opt.state, network=network).ask().config == opt.ask().config
    finally:
        torch.set_default_device("cpu")


def test_it_optimises(network: KernelNetwork) -> None:
    opt = optimizer(network)
    configs = advance(opt, 16)
    assert opt.best.value == min(map(loss, configs))
    assert opt.best.value < -0.3
    recommended = opt.recommend()
    assert loss(recommended.config) < -0.3
    assert recommended.lower < recommended.median < recommended.upper
    assert recommended.lower < loss(recommended.config) < recommended.upper


def test_maximising_is_minimising_the_negative(network: KernelNetwork) -> None:
    down, up = optimizer(network), optimizer(network, goal="maximize")
    for _ in range(6):
        a, b = down.ask(), up.ask()
        assert a == b
        down.tell(a, loss(a.config))
        up.tell(b, -loss(b.config))
    assert down.best.config == up.best.config
    a_mean, b_mean = down.recommend().median, up.recommend().median
    assert a_mean == pytest.approx(-b_mean)


@pytest.mark.parametrize("acquisition", ["pes", "mes", "jes", "ei", "logei"])
def test_every_acquisition(network: KernelNetwork, acquisition: str) -> None:
    opt = optimizer(network, space={"x": Float(0, 1)}, acquisition=acquisition, initial=2)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, (trial["x"] - 0.3) ** 2)
    assert len({trial["x"] for trial in opt.trials}) == 4


def test_the_seed_decides(network: KernelNetwork) -> None:
    first, again, other = (advance(optimizer(network, seed=s), 6) for s in (1, 1, 2))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_the_order_of_tells_does_not_matter(network: KernelNetwork) -> None:
    one, two = optimizer(network), optimizer(network)
    batch, same = one.ask(5), two.ask(5)
    assert batch == same
    for trial in batch:
        one.tell(trial, loss(trial.config))
    for trial in reversed(same):
        two.tell(trial, loss(trial.config))
    assert one.state == two.state
    assert one.ask() == two.ask()


def test_a_batch_is_distinct_and_pending(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"x": Float(0, 1)}, initial=3)
    for x in (0.1, 0.5, 0.9):
        opt.tell({"x": x}, (x - 0.3) ** 2)
    batch = opt.ask(4)
    assert [trial.number for trial in batch] == [3, 4, 5, 6]
    assert all(trial.status == "pending" for trial in batch)
    asked = sorted(trial["x"] for trial in batch)
    assert min(b - a for a, b in itertools.pairwise(asked)) > 0.01


def test_configs_can_be_told(network: KernelNetwork) -> None:
    opt = optimizer(network)
    asked = opt.ask()
    told = opt.tell(asked.config, 1.0)
    assert told.number == asked.number  # the pending trial of that config
    repeat = opt.tell(asked.config, 1.2)
    assert repeat.number == 1
    new = opt.tell({"lr": 0.1, "layers": 3.0, "act": "tanh"}, 0.5)
    assert new.config == {"lr": 0.1, "layers": 3, "act": "tanh", "seed": 7}
    assert [trial.value for trial in opt.trials] == [1.0, 1.2, 0.5]


def test_noisy_repeats_are_averaged(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"n": Int(1, 3)}, goal="maximize")
    for n, values in ((1, [0.0, 0.1]), (2, [0.5, 0.6, 0.4]), (3, [0.8, -0.6, -0.5])):
        for value in values:
            opt.tell({"n": n}, value)
    assert opt.best["n"] == 3
    assert opt.recommend().config["n"] == 2


def test_failures_are_remembered_and_do_not_poison(network: KernelNetwork) -> None:
    with_failures, without = optimizer(network), optimizer(network)
    for x in (1e-4, 1e-3, 1e-2):
        config = {"lr": x, "layers": 4, "act": "relu"}
        for opt in (with_failures, without):
            opt.tell(config, loss(config | {"seed": 7}))
    for value in (math.nan, math.inf, -math.inf):
        with_failures.tell({"lr": 0.1, "layers": 1, "act": "tanh"}, value)
    failed = with_failures.tell({"lr": 0.1, "layers": 2, "act": "tanh"}, failed=True, reason="OOM")
    assert failed.reason == "OOM"
    assert [t.status for t in with_failures.trials].count("failed") == 4
    assert with_failures.best == without.best
    assert with_failures.importance() != {}
    assert math.isfinite(with_failures.recommend().mean)


def test_past_results_and_configs_to_try_first(network: KernelNetwork) -> None:
    first = {"lr": 0.01, "layers": 2, "act": "relu"}
    past = [({"lr": 10.0**-k, "layers": k, "act": "gelu"}, float(k)) for k in (2, 3, 4)]
    opt = optimizer(network, start=[*past, Trial(9, past[0][0], "failed"), first])
    assert [trial.value for trial in opt.trials] == [2.0, 3.0, 4.0, None]
    assert opt.ask().config == first | {"seed": 7}
    assert opt.ask().config != first | {"seed": 7}
    called = optimizer(network, start=lambda space: [(past[0][0], len(space.free))])
    assert called.best.value == 3.0


def test_the_initial_design_counts_past_results(network: KernelNetwork) -> None:
    past = [({"x": x}, x) for x in (0.1, 0.5, 0.9)]
    fresh = optimizer(network, space={"x": Float(0, 1)}, initial=3)
    begun = optimizer(network, space={"x": Float(0, 1)}, initial=3, start=past)
    assert begun.ask()["x"] < 0.1 < fresh.ask()["x"]


def test_a_trial_belongs_to_its_optimiser(network: KernelNetwork) -> None:
    opt = optimizer(network)
    trial = optimizer(network, seed=5).ask()
    opt.ask()
    with pytest.raises(DataError, match="does not belong to this optimiser"):
        opt.tell(trial, 1.0)


def test_changing_a_returned_config_changes_nothing(network: KernelNetwork) -> None:
    opt = optimizer(network)
    opt.ask().config["lr"] = -1
    assert opt.trials[0]["lr"] > 0


def test_a_rejected_tell_leaves_no_trace(network: KernelNetwork) -> None:
    opt = optimizer(network)
    for bad in ({"lr": 1.0, "layers": 2, "act": "relu"}, {"lr": 0.01}):
        with pytest.raises(DataError):
            opt.tell(bad, 1.0)
    with pytest.raises(DataError):
        opt.tell({"lr": 0.01, "layers": 2, "act": "relu"}, "high")  # type: ignore[arg-type]
    assert opt.trials == []


def test_a_pool(network: KernelNetwork) -> None:
    pool = [{"x": 0.1 + 0.07 * i, "y": (7 * i % 20) / 20} for i in range(20)]
    space = Space({"x": Float(0.1, 1.7), "y": Float(0, 1)}, pool=pool)
    opt = optimizer(network, space=space)
    for _ in range(12):
        trial = opt.ask()
        assert trial.config in pool  # exactly, so that results can be looked up
        opt.tell(trial, (trial["x"] - 0.5) ** 2 + (trial["y"] - 0.5) ** 2)
    assert len({trial["x"] for trial in opt.trials}) == 12
    best = min((c["x"] - 0.5) ** 2 + (c["y"] - 0.5) ** 2 for c in pool)
    assert opt.best.value == pytest.approx(best)
    assert opt.recommend().config in pool


def test_constraints_hold(network: KernelNetwork) -> None:
    space = Space(
        {"a": Float(0, 1), "b": Float(0.01, 1, log=True), "n": Int(1, 5)},
        [Linear({"a": 1, "b": 1}, upper=0.7), Linear({"a": 10, "n": 1}, upper=6)],
    )
    opt = optimizer(network, space=space, goal="maximize", initial=3)
    for _ in range(8):
        trial = opt.ask()
        assert trial["a"] + trial["b"] <= 0.7 + 1e-6
        assert 10 * trial["a"] + trial["n"] <= 6 + 1e-6
        opt.tell(trial, trial["a"] + trial["b"] + 0.1 * trial["n"])
    # The best is a + b = 0.7 with n = 5, so a <= 0.1.
    assert opt.best.value == pytest.approx(1.2, abs=0.05)


def test_importance_finds_what_matters(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"x": Float(0, 1), "y": Float(0, 1)}, initial=12)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, 3 * trial["x"] + 0.3 * trial["y"])
    assert opt.importance() == pytest.approx({"x": 100 / 101, "y": 1 / 101}, abs=0.01)


def test_expected_gain_falls(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"x": Float(0, 1)}, initial=2)
    gains = []
    for _ in range(9):
        trial = opt.ask()
        opt.tell(trial, (trial["x"] - 0.37) ** 2)
        gains.append(opt.expected_gain())
    assert 0 < gains[-1] < 1e-2 * gains[1]


def test_plot(network: KernelNetwork) -> None:
    opt = optimizer(network)
    assert len(opt.plot().axes) == 1
    advance(opt, 3)
    assert [ax.get_xlabel() for ax in opt.plot().axes] == ["trial", "lr", "layers", "act"]


def test_threads_share_an_optimiser(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"x": Float(0, 1)})
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                trial = opt.ask()
                opt.tell(trial, trial["x"])
                opt.best  # noqa: B018
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [trial.number for trial in opt.trials] == list(range(12))
    assert all(trial.value == trial["x"] for trial in opt.trials)
    assert len({trial["x"] for trial in opt.trials}) == 12


def test_asking_does_not_touch_the_global_generator(network: KernelNetwork) -> None:
    before = torch.random.get_rng_state()
    advance(optimizer(network), 5)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_mistyped_result_can_be_corrected(network: KernelNetwork) -> None:
    opt, never = optimizer(network), optimizer(network)
    advance(opt, 5)
    advance(never, 5)
    wrong = opt.tell(opt.ask(), 1e4)
    opt.withdraw(wrong)
    assert opt.best.value == never.best.value
    opt.tell(wrong.config, loss(wrong.config))
    right = never.ask()
    never.tell(right, loss(right.config))
    assert [t.value for t in opt.trials if t.value] == [t.value for t in never.trials if t.value]
    assert float(opt._suggester.fitted().y[-1]) == loss(wrong.config)
    with pytest.raises(DataError, match="does not belong to this optimiser"):
        opt.withdraw(Trial(99, wrong.config))


def test_what_is_returned_is_the_callers(network: KernelNetwork) -> None:
    opt = optimizer(network, space={"c": Categorical([{"a": 1}, {"a": 2}, {"a": 3}])})
    for a in (1, 2):
        opt.tell({"c": {"a": a}}, a)
    recommended = opt.recommend().config
    recommended["c"]["a"] = 99
    assert opt.recommend().config != recommended
    trial = opt.ask()
    trial.config.pop("c")
    with pytest.raises(DataError, match="or its config was changed"):
        opt.tell(trial, 1.0)


def test_a_pending_trial_can_be_withdrawn(network: KernelNetwork) -> None:
    opt = optimizer(network)
    trial = opt.ask()
    opt.withdraw(trial)
    assert opt.trials[0].status == "withdrawn"
    assert opt.ask().config == trial.config  # the first point of the design is free again


def test_enqueued_configs_come_first(network: KernelNetwork) -> None:
    opt = optimizer(network)
    wanted = [{"lr": 1e-2, "layers": n, "act": "relu"} for n in (3, 4)]
    for config in wanted:
        opt.enqueue(config)
    assert [opt.ask().config for _ in range(2)] == [config | {"seed": 7} for config in wanted]
    pool = Space({"x": Float(0, 9)}, pool=[{"x": 1.0}, {"x": 2.0}])
    with pytest.raises(DataError, match="is not in the pool"):
        Optimizer(pool, network=network).enqueue({"x": 0.5})
    with pytest.raises(DataError, match="is not in the pool"):
        Optimizer(pool, network=network, start=[{"x": 0.5}])


def test_a_run_starts_from_the_trials_of_another(network: KernelNetwork) -> None:
    old = optimizer(network)
    advance(old, 3)
    gone, left = old.ask(2)
    old.withdraw(gone)
    new = optimizer(network, start=old.trials)
    assert [trial.value for trial in new.trials] == [trial.value for trial in old.trials[:3]]
    assert new.ask().config == left.config


def test_asking_is_all_or_nothing(network: KernelNetwork) -> None:
    calls = 0

    def cost(config: Config) -> float:
        nonlocal calls
        calls += 1
        return 1.0 if calls < 300 else math.nan

    opt = Optimizer({"x": Float(0, 1)}, network=network, initial=2, cost=cost)
    opt.enqueue({"x": 0.5})
    for x in (0.1, 0.6, 0.9):
        opt.tell({"x": x}, x)
    with pytest.raises(DataError, match="cost"):
        opt.ask(8)
    assert [trial.status for trial in opt.trials] == ["done"] * 3
    calls = 0
    assert opt.ask().config == {"x": 0.5}


def test_a_rounded_config_is_said(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    trial = opt.ask()
    with pytest.warns(AmortesWarning, match="is almost that of pending trial 0"):
        opt.tell({"x": round(trial["x"], 5)}, 1.0)


def test_tables_of_results_close_what_is_pending(network: KernelNetwork) -> None:
    opt = optimizer(network)
    opt.ask(3)
    frame = opt.to_frame()
    assert frame["status"].tolist() == ["pending"] * 3
    assert opt.tell_frame(frame) == []
    frame["value"] = [1.0, None, 3.0]
    frame.loc[3] = frame.loc[0]
    told = opt.tell_frame(frame)  # the first again: a new result
    assert [trial.number for trial in told] == [0, 2, 3]
    assert [trial.value for trial in opt.trials] == [1.0, None, 3.0, 1.0]
    frame.loc[1, "lr"] = 7.0
    frame.loc[1, "value"] = 2.0
    with pytest.raises(DataError, match="row 1: lr: 7"):
        opt.tell_frame(frame)
    assert len(opt.trials) == 4
    assert opt.trials[1].status == "pending"


def test_configs_can_be_withdrawn(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    for value in (1.0, 2.0):
        opt.tell({"x": 0.5}, value)
    pending = opt.ask()
    opt.withdraw(pending.config)
    opt.withdraw({"x": 0.5})  # the last one told
    assert [trial.status for trial in opt.trials] == ["done", "withdrawn", "withdrawn"]
    with pytest.raises(DataError, match=r"was withdrawn; tell its config"):
        opt.tell(pending, 1.0)
    assert opt.tell(pending.config, 1.0).status == "done"


def test_numbers_of_trials_do_not_count_from_the_end(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    trial = opt.ask()
    with pytest.raises(DataError, match=r"trial -1 .* does not belong to this optimiser"):
        opt.tell(Trial(-1, trial.config), 1.0)
    assert opt.trials == [trial]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_is_busy_does_not_hang(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with opt._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that hangs
        opt.tell({"x": 0.5}, 1.0)
        os._exit(len(opt.trials))
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 1
    assert opt.trials == []


def test_what_is_logged(network: KernelNetwork, caplog: pytest.LogCaptureFixture) -> None:
    opt = optimizer(network, initial=1)
    with caplog.at_level("INFO", logger="amortes"):
        trial = opt.ask()
        opt.tell(trial, 1.5)
        opt.ask()
    assert [record.getMessage() for record in caplog.records[:3]] == [
        f"asked: {trial!r}",
        f"told: {opt.trials[0]!r}",
        "fitted to 1 results",
    ]
    assert {record.name.split(".")[0] for record in caplog.records} == {"amortes"}


def test_logs_are_quiet_unless_wanted() -> None:
    handlers = logging.getLogger("amortes").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_programs_that_raise_floating_point_errors(noise: float) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, seed=0)
    rng = np.random.default_rng(0)
    with np.errstate(all="raise"):
        for _ in range(22):  # with noise, past the change to entropy search
            trial = opt.ask()
            value = (trial.config["x"] - 0.3) ** 2 + trial.config["y"]
            opt.tell(trial, value + noise * rng.standard_normal())
        assert math.isfinite(opt.predict(opt.recommend().config).mean)
