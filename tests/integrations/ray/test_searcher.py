import json
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune

from amortes.errors import ConfigError, DataError, FileError
from amortes.integrations.ray import AmortesSearch
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import AmortesWarning, Float, Linear, Space

SPACE: dict[str, Any] = {"x": tune.uniform(0, 1), "net": {"n": tune.randint(1, 9)}}


def searcher(network: KernelNetwork, **changes: Any) -> AmortesSearch:
    settings: dict[str, Any] = {"space": SPACE, "metric": "loss", "mode": "min"}
    return AmortesSearch(**settings | {"acquisition": "logei", "network": network} | changes)


def loss(config: dict[str, Any]) -> float:
    return float((config["x"] - 0.3) ** 2 + 0.01 * (config["net"]["n"] - 7) ** 2)


def advance(search: AmortesSearch, count: int, begin: int = 0) -> list[dict[str, Any]]:
    """What a Tuner does, one trial at a time."""
    configs = []
    for i in range(begin, begin + count):
        config = search.suggest(f"t{i}")
        search.on_trial_result(f"t{i}", {"loss": 99.0})
        search.on_trial_complete(f"t{i}", {"loss": loss(config), "training_iteration": 2})
        configs.append(config)
    return configs


def test_it_learns(network: KernelNetwork) -> None:
    search = searcher(network)
    configs = advance(search, 14)
    assert min(map(loss, configs)) < 0.003
    assert search.optimizer is not None
    assert [trial.value for trial in search.optimizer.trials] == list(map(loss, configs))
    upwards = searcher(network, mode="max")
    assert max(map(loss, advance(upwards, 10))) > 0.7


def test_trials_under_way_are_pending(network: KernelNetwork) -> None:
    search = searcher(network)
    advance(search, 4)
    configs = [search.suggest(f"u{i}") for i in range(3)]
    assert len({json.dumps(config) for config in configs}) == 3
    assert search.optimizer is not None
    assert [trial.status for trial in search.optimizer.trials[4:]] == ["pending"] * 3
    search.on_trial_complete("u1", {"loss": 5.0})
    search.on_trial_complete("u1", {"loss": 6.0})  # again
    search.on_trial_complete("from elsewhere", {"loss": 6.0})
    assert [trial.value for trial in search.optimizer.trials[4:]] == [None, 5.0, None]


def test_trials_that_fail(network: KernelNetwork) -> None:
    search = searcher(network)
    assert search.optimizer is not None
    for i in range(6):
        search.suggest(f"t{i}")
    search.on_trial_complete("t0", {"loss": 1.0}, error=True)
    search.on_trial_complete("t1", None, error=True)
    search.on_trial_complete("t2", {"loss": math.nan})
    with pytest.warns(AmortesWarning, match="t3 ended without 'loss'"):
        search.on_trial_complete("t3", {"accuracy": 1.0})
    with pytest.warns(AmortesWarning, match="t4 counts as failed: loss: a result must be a number"):
        search.on_trial_complete("t4", {"loss": "low"})
    with pytest.warns(AmortesWarning, match="t5 ended without"):
        search.on_trial_complete("t5")
    assert [trial.status for trial in search.optimizer.trials] == ["failed"] * 6
    for value in (3.0, 4.0):
        search.on_trial_complete("t1", {"loss": value})  # run again, with success; it is told once
    states = [trial.status for trial in search.optimizer.trials]
    assert states == ["failed", "withdrawn", *["failed"] * 4, "done"]


def test_the_tuner_may_give_space_metric_and_mode(network: KernelNetwork) -> None:
    search = AmortesSearch(network=network)
    with pytest.raises(ConfigError, match="needs a space, a metric and a mode"):
        search.suggest("t0")
    assert search.set_search_properties("loss", "max", SPACE | {"data": object()})
    assert search.suggest("t0").keys() == {"x", "net"}
    assert search.optimizer is not None
    assert search.optimizer.goal == "maximize"
    own = searcher(network, metric=None, mode=None)
    assert not own.set_search_properties("loss", "min", {"k": 3})  # it keeps its own space
    assert own.suggest("t0").keys() == {"x", "net"}
    assert (own.metric, own.mode) == ("loss", "min")


def test_points_to_evaluate(network: KernelNetwork) -> None:
    first = [{"x": 0.1 * i, "net": {"n": i}} for i in (1, 2, 3)]
    search = searcher(network, points_to_evaluate=first, evaluated_rewards=[0.5])
    assert search.optimizer is not None
    assert search.optimizer.best.value == 0.5
    assert [search.suggest("a"), search.suggest("b")] == first[1:]
    search.add_evaluated_point({"x": 0.3, "net": {"n": 7}, "data": 1}, 0.0)
    search.add_evaluated_point({"x": 0.9, "net": {"n": 7}}, 0.0, error=True)
    assert search.optimizer.best.value == 0.0
    assert search.optimizer.trials[-1].status == "failed"
    with pytest.raises(DataError, match="x: 2 is outside"):
        search.add_evaluated_point({"x": 2, "net": {"n": 7}}, 0.0)


def test_constraints(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)}, [Linear({"x": 1, "y": 1}, 0.5)])
    search = searcher(network, space=space)
    configs = [search.suggest(str(i)) for i in range(4)]
    assert all(config["x"] + config["y"] <= 0.5 + 1e-6 for config in configs)


def test_saved_and_restored_it_goes_on_alike(network: KernelNetwork, tmp_path: Path) -> None:
    search, path = searcher(network), tmp_path / "search.json"
    advance(search, 5)
    pending = search.suggest("pending")
    search.save(path)
    others = [searcher(network), AmortesSearch(network=network), pickle.loads(pickle.dumps(search))]
    for other in others[:2]:
        other.restore(path)
    assert others[1].set_search_properties("loss", "min", SPACE)  # by another Tuner
    with pytest.raises(ConfigError, match="param_space: differs from"):
        others[1].set_search_properties("loss", "min", {"x": tune.uniform(0, 2)})
    for other in (search, *others):
        other.on_trial_complete("pending", {"loss": loss(pending)})
    expected = advance(search, 2, begin=9)
    assert [advance(other, 2, begin=9) for other in others] == [expected] * 3
    search.save_to_dir(str(tmp_path))
    others[0].restore_from_dir(str(tmp_path))
    assert others[0].suggest("z") == search.suggest("z")


def test_files_that_are_not_its_own(network: KernelNetwork, tmp_path: Path) -> None:
    search, path = searcher(network), tmp_path / "search.json"
    for text in ("{}", "[]", "7"):
        path.write_text(text)
        with pytest.raises(FileError, match=r"search\.json was not saved by AmortesSearch"):
            search.restore(path)
    search.save(path)
    with pytest.raises(ConfigError, match=r"search\.json: space: the saved run has"):
        searcher(network, space={"x": tune.uniform(0, 2)}).restore(path)
    path.write_text('{"format": "amortes-ray", "metric": "loss"}')
    with pytest.raises(FileError, match="lacks mode, numbers, optimizer, translation"):
        search.restore(path)


def test_a_space_that_a_file_cannot_have(network: KernelNetwork, tmp_path: Path) -> None:
    space = {"f": tune.choice([math.sin, math.cos]), "k": tune.choice([math])}
    search, path = searcher(network, space=space), tmp_path / "search.json"
    first = search.suggest("t0")
    assert first["f"] in (math.sin, math.cos)
    assert first["k"] is math
    search.save(path)
    other = searcher(network, space=None)
    other.restore(path)
    other.set_search_properties("loss", "min", space)  # only now does it know its space
    other.on_trial_complete("t0", {"loss": 1.0})
    assert other.optimizer is not None
    assert other.optimizer.best.config == {"f": first["f"]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mode": "minimize"}, "mode: must be 'min' or 'max', not 'minimize'"),
        ({"mode": ["min", "max"], "metric": ["a", "b"]}, "one objective is supported"),
        ({"acquisition": "ucb"}, "acquisition: must be one of"),
        ({"evaluated_rewards": [1.0]}, "has 1 values, but there are only 0 points"),
    ],
)
def test_bad_arguments(network: KernelNetwork, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        searcher(network, **changes)


@pytest.fixture
def _local_ray() -> Iterator[None]:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("_local_ray")
@pytest.mark.filterwarnings("ignore")  # of Ray
def test_on_a_local_ray(network: KernelNetwork, tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        if config["x"] > 0.6:
            raise ValueError("too high")
        for step in range(2):
            tune.report({"loss": config["x"] + config["k"] + 1.0 - step})

    def fit(search: AmortesSearch, name: str) -> Any:
        return tune.Tuner(
            train,
            param_space={"x": tune.uniform(0, 1), "k": 10.0},
            tune_config=tune.TuneConfig(
                search_alg=search, metric="loss", mode="min", num_samples=2, reuse_actors=True
            ),
            run_config=tune.RunConfig(name=name, storage_path=str(tmp_path), verbose=0),
        ).fit()

    first = [{"x": 0.5}, {"x": 0.7}]
    search = AmortesSearch(network=network, points_to_evaluate=first)
    results = fit(search, "first")
    assert len(results.errors) == 1
    assert search.optimizer is not None
    told = [(trial.status, trial.value) for trial in search.optimizer.trials]
    assert told == [("done", 10.5), ("failed", None)]  # the last result of each
    again = AmortesSearch(network=network)
    again.restore_from_dir(str(tmp_path / "first"))
    fit(again, "second")
    assert again.optimizer is not None
    assert [(t.status, t.value) for t in again.optimizer.trials[:2]] == told
    assert len(again.optimizer.trials) == 4
    assert not any(trial.status == "pending" for trial in again.optimizer.trials)
