"""Whole runs in spaces with conditions and with constraints that are functions."""

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Allowed, Categorical, Float, Int, Linear, Optimizer, Space, minimize

MODELS: dict[str, Any] = {
    "model": Categorical(
        {
            "svm": {"C": Float(1e-3, 1e3, log=True), "kernel": Categorical(["rbf", "linear"])},
            "forest": {"trees": Int(10, 100, step=10)},
            "bayes": {},
        }
    ),
    "scale": Float(0, 1),
}
HAVE = {
    "svm": ["model", "C", "kernel", "scale"],
    "forest": ["model", "trees", "scale"],
    "bayes": ["model", "scale"],
}


def loss(config: dict[str, Any]) -> float:
    assert list(config) == HAVE[config["model"]]
    bad = {"svm": 0.5, "bayes": 1.0}.get(config["model"], 0.0)
    if config["model"] == "forest":
        bad += abs(config["trees"] - 60) / 100
    return float(bad + (config["scale"] - 0.3) ** 2)


def test_conditional_parameters(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    first = {"model": "bayes", "scale": 0.5}
    opt = Optimizer(MODELS, network=network, start=[first])
    assert opt.ask().config == first
    for _ in range(19):
        trial = opt.ask()
        opt.tell(trial, loss(trial.config))
    assert {trial.config["model"] for trial in opt.trials} == set(HAVE)
    opt.tell({"model": "forest", "trees": 60, "scale": 0.3}, 0.0)
    assert opt.best.config == {"model": "forest", "trees": 60, "scale": 0.3}
    assert opt.recommend().config["model"] == "forest"
    assert opt.predict({"model": "bayes", "scale": 0.3}).mean > opt.best.value  # type: ignore[operator]
    shares = opt.importance()
    assert set(shares) == {"model", "C", "kernel", "trees", "scale"}
    assert shares["model"] > shares["C"]
    opt.plot()
    opt.save(path)
    again = Optimizer.load(path, network=network)
    assert again.space == opt.space
    assert again.state == opt.state == json.loads(path.read_text())
    assert again.ask() == opt.ask()
    with pytest.raises(DataError, match="trees: does not matter where model is 'svm'"):
        opt.enqueue({"model": "svm", "C": 1.0, "kernel": "rbf", "trees": 20, "scale": 0.1})


def test_minimising_over_branches(network: KernelNetwork) -> None:
    result = minimize(loss, MODELS, n_trials=30, network=network, progress=False)
    assert result.x["model"] == "forest"
    assert result.fun < 0.1


def test_a_pool_of_branches(network: KernelNetwork) -> None:
    pool = [
        {"model": "bayes", "scale": 0.1},
        {"model": "forest", "trees": 20, "scale": 0.1},
        {"model": "svm", "C": 1.0, "kernel": "rbf", "scale": 0.1},
    ]
    opt = Optimizer(Space(MODELS, pool=pool), network=network)
    asked = []
    for _ in pool:
        trial = opt.ask()
        opt.tell(trial, loss(trial.config))
        asked.append(trial.config)
    assert sorted(asked, key=str) == sorted(pool, key=str)


def in_ring(config: dict[str, Any]) -> bool:
    return bool(0.4 <= np.hypot(config["x"], config["y"]) <= 0.5)


def in_ring_all(values: dict[str, Any]) -> np.ndarray:
    radius = np.hypot(values["x"], values["y"])
    return np.asarray((radius >= 0.4) & (radius <= 0.5))


SQUARE: dict[str, Any] = {"x": Float(-1, 1), "y": Float(-1, 1), "n": Int(1, 3)}


@pytest.mark.parametrize("ring", [in_ring, Allowed(in_ring), Allowed(in_ring_all, vectorized=True)])
def test_constraints_that_are_functions(network: KernelNetwork, ring: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    space = Space(SQUARE, [ring, Linear({"x": 1.0}, upper=0.2)])
    opt = Optimizer(space, network=network)
    for _ in range(12):
        trial = opt.ask()
        assert in_ring(trial.config)
        assert trial["x"] <= 0.2
        opt.tell(trial, (trial["x"] - 1) ** 2 + (trial["y"] - 1) ** 2)  # best outside
    assert in_ring(opt.recommend().config)
    opt.tell({"x": 1.0, "y": 1.0, "n": 1}, 0.0)  # not allowed
    assert in_ring(opt.best.config)
    with pytest.raises(DataError, match="violates a constraint"):
        opt.enqueue({"x": 0.0, "y": 0.0, "n": 1})
    opt.save(path)
    with pytest.raises(ConfigError, match=r"cannot contain the function in_ring.*space=space"):
        Optimizer.load(path, network=network)
    again = Optimizer.load(path, space=space, network=network)
    assert again.ask() == opt.ask()


def test_nothing_is_allowed(network: KernelNetwork) -> None:
    for space in (
        Space(SQUARE, [lambda config: False]),
        Space(SQUARE, [Allowed(lambda values: values["x"] > 2, vectorized=True)]),
        Space({"n": Int(1, 3)}, [lambda config: config["n"] > 3]),
    ):
        opt = Optimizer(space, network=network)
        with pytest.raises(ConfigError, match="constraints: none of"):
            opt.ask()
        assert opt.trials == []


def test_what_functions_get(network: KernelNetwork) -> None:
    seen = []

    def one(config: dict[str, Any]) -> bool:
        seen.append(config)
        return bool(config["model"] != "bayes")

    def many(values: dict[str, Any]) -> Any:
        assert values["seed"] == 7
        forest = values["model"] == "forest"
        assert np.array_equal(np.isnan(values["trees"]), ~forest)
        assert np.array_equal(values["kernel"] == None, values["model"] != "svm")  # noqa: E711
        return ~(values["trees"] > 50)  # also where it is NaN

    space = Space({**MODELS, "seed": 7}, [one, Allowed(many, vectorized=True)])
    opt = Optimizer(space, network=network)
    for _ in range(10):
        trial = opt.ask()
        assert trial["model"] != "bayes"
        assert trial.config.get("trees", 0) <= 50
        opt.tell(trial, trial["scale"])
    assert all(list(config) == [*HAVE[config["model"]], "seed"] for config in seen)
    assert not space.allows({"model": "forest", "trees": 60, "scale": 0.3})
    assert space.allows({"model": "svm", "C": 1.0, "kernel": "rbf", "scale": 0.3})


class Kernel(Enum):
    RBF = 1
    LINEAR = 2


def test_going_on_with_what_files_cannot_have(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    space = Space(
        {"kernel": Categorical({Kernel.RBF: {"gamma": Float(0, 1)}, Kernel.LINEAR: {}})}
        | {"x": Float(0, 1)},
        ["x < 0.9", lambda config: config["x"] > 0.2],
    )

    def fun(config: dict[str, Any]) -> float:
        return float(config["x"] + config.get("gamma", 0.5))

    options: dict[str, Any] = {"network": network, "progress": False, "state": path}
    first = minimize(fun, space, 4, **options)
    more = minimize(fun, space, 7, **options)
    assert more.trials[:4] == first.trials
    assert len(more.trials) == 7
    assert all(0.2 < trial["x"] < 0.9 for trial in more.trials)
    assert all(("gamma" in t.config) == (t["kernel"] is Kernel.RBF) for t in more.trials)
    other = Space(space.parameters, ["x < 0.9"], conditions=space.conditions)
    with pytest.raises(ConfigError, match="space: the run in"):
        minimize(fun, other, 7, **options)


@pytest.mark.slow
def test_a_thousand_choices_fit_in_a_gibibyte() -> None:
    script = """
import resource
from amortes import Categorical, Float, Int, Optimizer
space = {"c": Categorical(range(1000)), "x": Float(0, 1), "n": Int(1, 8)}
opt = Optimizer(space)
for _ in range(15):
    trial = opt.ask()
    opt.tell(trial, trial["x"] + trial["c"] / 1000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(out.stdout) < 2**20  # KiB
