import importlib
import math
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import ConfigError, DataError, FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import AmortesWarning, Float, Int, Optimizer, Trial, minimize
from amortes.optimiser.result import Result
from amortes.optimiser.space import Config

PLANE = {"x": Float(-5, 10), "y": Float(0, 15)}
LINE = {"x": Float(0, 1)}


def branin(config: Config) -> float:
    x, y = float(config["x"]), float(config["y"])
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def run(network: KernelNetwork, fun: Any, space: Any = LINE, n: Any = 6, **rest: Any) -> Result:
    settings: dict[str, Any] = {"acquisition": "logei", "progress": False}
    return minimize(fun, space, n, network=network, **(settings | rest))


def test_branin(network: KernelNetwork) -> None:
    result = run(network, branin, PLANE, 22, progress=True)
    assert result.fun < 0.6  # the minimum is 0.398; the mean over the domain 54
    assert result.fun == branin(result.x)
    assert result.n_trials == len(result.trials) == 22
    assert result.message == "all 22 trials are done."
    assert result.optimizer.best.value == result.fun


def test_maximising(network: KernelNetwork) -> None:
    result = run(network, lambda config: config["x"], goal="maximize")
    assert result.fun > 0.99


def test_workers_evaluate_at_the_same_time(network: KernelNetwork) -> None:
    together = threading.Barrier(3, timeout=20)

    def fun(config: Config) -> float:
        together.wait()  # passes only if three evaluations are under way
        return float(config["x"])

    result = run(network, fun, n=6, workers=3)
    assert result.n_trials == 6
    assert all(trial.status == "done" for trial in result.trials)


def test_one_worker_runs_in_the_callers_thread(network: KernelNetwork) -> None:
    threads = set()

    def fun(config: Config) -> float:
        threads.add(threading.current_thread())
        return float(config["x"])

    run(network, fun, n=3)
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("workers", [1, 2])
def test_exceptions_are_recorded(network: KernelNetwork, workers: int) -> None:
    def fun(config: Config) -> float:
        if config["x"] > 0.5:
            raise ZeroDivisionError("too large")
        return -float(config["x"])

    with pytest.warns(AmortesWarning, match=r"raised ZeroDivisionError\('too large'\)") as said:
        result = run(network, fun, n=8, workers=workers)
    assert len(said) == 1
    failed = [trial for trial in result.trials if trial.status == "failed"]
    assert failed
    assert all(trial.reason == "ZeroDivisionError: too large" for trial in failed)
    assert result.n_trials == 8
    assert result.x["x"] <= 0.5


@pytest.mark.parametrize("workers", [1, 2])
def test_exceptions_can_be_raised(network: KernelNetwork, workers: int) -> None:
    def fun(config: Config) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(network, fun, errors="raise", workers=workers)


def test_ctrl_c_is_never_swallowed(network: KernelNetwork) -> None:
    def fun(config: Config) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(network, fun)


def test_no_result_at_all_is_an_error_with_its_cause(network: KernelNetwork) -> None:
    def fun(config: Config) -> float:
        raise ZeroDivisionError("always")

    with (
        pytest.warns(AmortesWarning),
        pytest.raises(DataError, match=r"none of 3 .*ZeroDivisionError: always") as caught,
    ):
        run(network, fun, n=3)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(DataError, match="the value was nan"):
        run(network, lambda _: math.nan, n=3)


def test_the_callback_sees_every_trial_and_can_stop(network: KernelNetwork) -> None:
    seen: list[Trial] = []

    def callback(optimizer: Optimizer, trial: Trial) -> bool:
        assert optimizer.trials[trial.number] == trial
        seen.append(trial)
        return len(seen) == 3

    result = run(network, lambda config: config["x"], n=9, callback=callback)
    assert result.n_trials == len(seen) == 3
    assert result.message == "the callback ended the run after 3 trials."


def test_it_stops_when_little_is_left_to_gain(network: KernelNetwork) -> None:
    def bowl(config: Config) -> float:
        return float((config["x"] - 0.37) ** 2)

    result = run(network, bowl, n=40, early_stop=1e-3)
    assert result.n_trials < 20
    assert "little is left to gain" in result.message
    assert result.fun < 1e-4


def test_a_penalty_does_not_make_what_is_left_look_small(network: KernelNetwork) -> None:
    def bowl(config: Config) -> float:
        return 1e30 if config["x"] > 0.8 else float((config["x"] - 0.37) ** 2)

    result = run(network, bowl, n=40, early_stop=1e-3)
    assert max(trial.value or 0.0 for trial in result.trials) == 1e30
    assert result.fun < 1e-4


def test_noise_alone_is_nothing_to_gain(network: KernelNetwork) -> None:
    # Repeats of three configs: what is left is noise.
    values = iter([math.sin(100.0 * i) for i in range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmortesWarning)
        result = run(
            network,
            lambda config: abs(config["n"] - 2) * 20 + next(values),
            {"n": Int(1, 3)},
            n=40,
            early_stop=2e-2,
        )
    assert result.n_trials < 40
    assert result.optimizer.recommend().config == {"n": 2}


def test_time_is_limited(network: KernelNetwork) -> None:
    def slow(config: Config) -> float:
        time.sleep(0.2)
        return float(config["x"])

    result = run(network, slow, n=1000, timeout=0.5)
    assert 1 <= result.n_trials <= 3
    assert result.message.startswith("the timeout ended the run after")


def test_costs_are_passed_on(network: KernelNetwork) -> None:
    result = run(network, lambda config: (config["x"], 1.0 + config["x"]), n=4)
    assert [trial.cost for trial in result.trials] == [1.0 + t["x"] for t in result.trials]
    with pytest.raises(DataError, match="not a tuple of 3"):
        run(network, lambda config: (1, 2, 3), n=1, errors="raise")


def test_the_seed_decides(network: KernelNetwork) -> None:
    first, again = (run(network, lambda config: config["x"], seed=4) for _ in range(2))
    assert first.trials == again.trials


@pytest.mark.parametrize("odd", [None, "0.3", {"loss": 1.0}, (1.0, 2.0, 3.0)])
def test_a_result_that_is_none_is_a_failure(network: KernelNetwork, odd: Any) -> None:
    def fun(config: Config) -> Any:
        return odd if config["x"] > 0.5 else -float(config["x"])

    with pytest.warns(AmortesWarning, match="returned no result"):
        result = run(network, fun, n=8)
    assert result.n_trials == 8
    assert any("a result must be a number" in (trial.reason or "") for trial in result.trials)
    with pytest.raises(DataError, match="must be a number"):
        run(network, fun, n=8, errors="raise")


def test_failures_alone_end_the_run(network: KernelNetwork) -> None:
    calls: list[Config] = []
    with pytest.warns(AmortesWarning), pytest.raises(DataError, match="none of 10 evaluations"):
        run(network, calls.append, n=50)
    assert len(calls) == 10


def test_truth_of_any_library_stops(network: KernelNetwork) -> None:
    result = run(network, lambda c: c["x"], n=9, callback=lambda o, t: np.bool_(True))
    assert result.n_trials == 1
    result = run(network, lambda c: c["x"], n=3, callback=lambda o, t: "text")
    assert result.n_trials == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_goes_on_from_its_file(network: KernelNetwork, tmp_path: Path, workers: int) -> None:
    path = tmp_path / "run.json"
    past = [({"x": 0.9}, 0.81), ({"x": 0.1}, 0.01)]
    calls: list[float] = []

    def fun(config: Config) -> float:
        calls.append(config["x"])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return float(config["x"]) ** 2

    with pytest.raises(KeyboardInterrupt):
        run(network, fun, n=9, start=past, state=path, workers=workers)
    interrupted = calls[3]
    result = run(network, fun, n=9, start=past, state=path, workers=workers)
    assert result.n_trials == 9
    assert len(result.trials) == 11
    assert interrupted in calls[4:]  # once more, from its beginning
    assert all(trial.status == "done" for trial in result.trials)
    if workers == 1:
        calls.clear()
        undisturbed = run(network, lambda c: c["x"] ** 2, n=9, start=past)
        assert [t.config for t in undisturbed.trials] == [t.config for t in result.trials]
    again = run(network, fun, n=9, start=past, state=path)
    assert again.n_trials == 9
    assert again.fun == result.fun
    with pytest.raises(ConfigError, match=r"seed: the run in .* has 0, not 3"):
        run(network, fun, n=9, state=path, seed=3)


def test_a_run_that_has_enough_is_over(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    calls: list[Config] = []

    def fun(config: Config) -> float:
        calls.append(config)
        assert len(calls) <= 6
        return float(config["x"])

    assert run(network, fun, n=6, state=path).n_trials == 6
    again = run(network, fun, n=4, state=path)
    assert again.n_trials == 6
    assert again.message == "all 6 trials are done."


def test_past_results_are_those_of_the_run(network: KernelNetwork, tmp_path: Path) -> None:
    path, past = tmp_path / "run.json", [({"x": 0.9}, 0.81), ({"x": 0.1}, 0.01)]
    run(network, lambda c: c["x"] ** 2, n=3, state=path, start=past)
    for other in ([], past[:1], [*past, ({"x": 0.5}, 0.25)]):
        with pytest.raises(ConfigError, match=r"start: the run in .* started from 2 past results"):
            run(network, lambda c: c["x"] ** 2, n=5, state=path, start=other)
    # Configs to try first are no results.
    result = run(network, lambda c: c["x"] ** 2, n=5, state=path, start=[*past, {"x": 0.3}])
    assert result.n_trials == 5
    assert len(result.trials) == 7


@pytest.mark.parametrize("how", ["exception", "callback"])
def test_what_is_under_way_is_kept(network: KernelNetwork, tmp_path: Path, how: str) -> None:
    path, begun, ended = tmp_path / "run.json", threading.Barrier(2, timeout=20), threading.Event()

    def fun(config: Config) -> float:
        if begun.wait():
            ended.wait(20)
            return 7.0
        if how == "exception":
            threading.Timer(0.2, ended.set).start()
            raise ZeroDivisionError
        return 1.0

    def callback(optimizer: Optimizer, trial: Trial) -> bool:
        ended.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(network, fun, n=9, workers=2, state=path, errors="raise", callback=callback)
    told = [trial.value for trial in Optimizer.load(path, network=network).trials]
    assert 7.0 in told


def test_one_call_at_a_time_uses_a_file(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.json"

    def fun(config: Config) -> float:
        with pytest.raises(FileError, match=r"another `minimize` .*run\.json.*another file"):
            run(network, fun, n=2, state=path)
        return float(config["x"])

    assert run(network, fun, n=2, state=path).n_trials == 2
    assert run(network, lambda c: c["x"], n=3, state=path).n_trials == 3


def test_workers_keep_their_threads(network: KernelNetwork) -> None:
    before = torch.get_num_threads()
    found = set()

    def fun(config: Config) -> float:
        found.add(torch.get_num_threads())
        return float(config["x"])

    try:
        torch.set_num_threads(3)
        past = [({"x": x / 10}, x / 10) for x in range(10)]
        run(network, fun, n=8, workers=4, start=past)
    finally:
        torch.set_num_threads(before)
    assert found == {3}


def test_a_second_interrupt_loses_nothing_that_has_ended(
    network: KernelNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, release = tmp_path / "run.json", threading.Event()
    begun = threading.Barrier(3, timeout=20)
    wrong, _, slow = (trial["x"] for trial in Optimizer(LINE, network=network).ask(3))

    def fun(config: Config) -> float:
        begun.wait()
        if config["x"] == wrong:
            raise ZeroDivisionError
        if config["x"] == slow:
            release.wait(20)
        return 7.0

    def interrupted(futures: dict[Future[Any], Trial]) -> Iterator[Future[Any]]:
        # What is fast ends, then the user loses patience.
        yield from [future for future, trial in futures.items() if trial["x"] != slow]
        raise KeyboardInterrupt

    module = importlib.import_module("amortes.optimiser.minimize")  # the name is the function's
    monkeypatch.setattr(module, "as_completed", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(network, fun, n=9, workers=3, state=path, errors="raise")
    finally:
        release.set()
    told = [trial.value for trial in Optimizer.load(path, network=network).trials]
    assert [value for value in told if value is not None] == [7.0]


def test_a_bad_cost_does_not_spoil_the_value(network: KernelNetwork) -> None:
    with pytest.warns(AmortesWarning, match="a cost must be a positive") as said:
        result = run(network, lambda c: (c["x"], 0.0 if c["x"] > 0.5 else 1.0), n=6)
    assert len(said) == 1
    assert all(trial.status == "done" for trial in result.trials)
    assert {trial.cost for trial in result.trials} == {None, 1.0}


def test_patience_with_failures(network: KernelNetwork) -> None:
    calls: list[float] = []

    def fun(config: Config) -> float:
        calls.append(config["x"])
        return math.nan

    for patience, count in ((3, 3), (None, 14)):
        calls.clear()
        with pytest.raises(DataError, match="returned a finite number"):
            run(network, fun, n=14, max_failures=patience)
        assert len(calls) == count
    # What succeeded before counts.
    calls.clear()
    result = run(network, fun, n=14, start=[({"x": 0.5}, 1.0)], max_failures=3)
    assert (len(calls), result.fun) == (14, 1.0)


def test_integers_of_numpy(network: KernelNetwork) -> None:
    result = run(network, lambda c: c["x"], n=np.int64(3), seed=np.int64(1), workers=np.int32(1))
    assert result.n_trials == 3
