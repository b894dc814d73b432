import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Optimizer, Recommendation
from amortes.optimiser.prediction import check_level

SPACE = {"lr": Float(1e-4, 1.0, log=True), "n": Int(1, 9), "c": Categorical(["a", "b"]), "k": 1}
HERE = {"lr": 0.02, "n": 4, "c": "b"}


@pytest.fixture(scope="module")
def opt(network: KernelNetwork) -> Optimizer:
    optimizer = Optimizer(SPACE, network=network)
    rng = np.random.default_rng(0)
    for i in range(16):
        lr, n, c = 10 ** rng.uniform(-4, 0), int(rng.integers(1, 10)), "ab"[i % 2]
        value = 100 + (math.log10(lr) + 2) ** 2 + 0.2 * n + 0.1 * rng.normal()
        optimizer.tell({"lr": lr, "n": n, "c": c}, value)
    return optimizer


def test_quantiles_and_moments_are_those_of_the_samples(opt: Optimizer) -> None:
    for noise in (False, True):
        found = opt.predict(HERE, level=0.8, observation_noise=noise)
        samples = found.samples(20_000, seed=1)
        assert samples.shape == (20_000,)
        sd = samples.std()
        assert found.mean == pytest.approx(samples.mean(), abs=0.04 * sd)
        below = [(samples < edge).mean() for edge in (found.lower, found.median, found.upper)]
        assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.015)


def test_a_new_result_is_less_certain_by_the_noise(opt: Optimizer) -> None:
    value, result = opt.predict(HERE), opt.predict(HERE, observation_noise=True)
    assert result.mean == pytest.approx(value.mean, abs=0.02 * (value.upper - value.lower))
    assert result.upper - result.lower > 1.05 * (value.upper - value.lower)
    assert (value.observation_noise, result.observation_noise) == (False, True)


def test_intervals_hold_what_they_promise(opt: Optimizer) -> None:
    rng = np.random.default_rng(1)
    configs: list[dict[str, Any]] = [
        {"lr": 10 ** rng.uniform(-4, 0), "n": int(rng.integers(1, 10)), "c": "a"} for _ in range(60)
    ]
    truth = [100 + (math.log10(c["lr"]) + 2) ** 2 + 0.2 * c["n"] for c in configs]
    found = opt.predict(configs, level=0.9)
    inside = sum(p.lower < f < p.upper for p, f in zip(found, truth, strict=True))
    assert inside >= stats.binom.ppf(0.001, 60, 0.85)


def test_one_or_many_configs_or_trials(opt: Optimizer) -> None:
    trial = opt.trials[3]
    one, many = opt.predict(trial), opt.predict([trial, HERE, {**HERE, "k": 1}])
    for name in ("mean", "median", "lower", "upper"):
        assert getattr(many[0], name) == pytest.approx(getattr(one, name), rel=1e-12)
    assert many[1] == many[2]
    assert many[0].config == one.config == trial.config
    assert many[1].config["k"] == 1
    assert opt.predict([]) == []


def test_the_goal_does_not_matter(opt: Optimizer, network: KernelNetwork) -> None:
    up = Optimizer(SPACE, "maximize", network=network)
    for trial in opt.trials:
        assert trial.value is not None
        up.tell(trial.config, -trial.value)
    down, other = opt.predict(HERE), up.predict(HERE)
    assert (down.mean, down.lower, down.upper) == pytest.approx(
        (-other.mean, -other.upper, -other.lower)
    )


def test_samples_are_those_of_their_seed(opt: Optimizer) -> None:
    found = opt.predict(HERE)
    assert (found.samples(5, seed=3) == found.samples(5, seed=3)).all()
    assert (found.samples(5, seed=3) != found.samples(5, seed=4)).all()
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert (again.samples(5) == found.samples(5)).all()
    with pytest.raises(ConfigError, match="samples"):
        found.samples(0)


def test_they_are_readable(opt: Optimizer) -> None:
    found = opt.predict(HERE, level=0.8)
    assert f"{found.mean:.4g}" in repr(found)
    assert "80%" in repr(found)
    assert "lr=0.02, n=4, c=b" in repr(found)
    assert "80% interval" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["mean"] == found.mean


@pytest.mark.parametrize("level", [0, 1, -0.5, "0.9", math.nan, None, True, [0.9], 1j])
def test_levels_are_checked(level: Any) -> None:
    with pytest.raises(DataError, match="level: must be between 0 and 1"):
        check_level(level)


@pytest.mark.parametrize("configs", [5, "x", None, ["x"], {"lr": 1e-3}, [{"lr": 5.0}]])
def test_configs_are_checked(opt: Optimizer, configs: Any) -> None:
    with pytest.raises(DataError):
        opt.predict(configs)


def test_nothing_is_known_without_results(network: KernelNetwork) -> None:
    with pytest.raises(DataError, match="no result to learn from"):
        Optimizer(SPACE, network=network).predict(HERE)


def test_a_recommendation_is_readable() -> None:
    found = Recommendation({"lr": 0.001, "act": "<relu>"}, 0.6, 0.25, 0.75, 0.9, 0.5)
    assert repr(found) == (
        "Recommendation(lr=0.001, act=<relu>; expected result 0.5, between 0.25 and 0.75 with "
        "probability 90%)"
    )
    assert "&lt;relu&gt;" in found._repr_html_()
    assert "0.25 to 0.75" in found._repr_html_()


def test_one_outlier_is_not_what_is_said_of_the_others(network: KernelNetwork) -> None:
    results = [({"x": i / 9}, 1e30 if i == 4 else (i / 9 - 0.3) ** 2) for i in range(10)]
    found = Optimizer({"x": Float(0, 1)}, network=network, start=results).predict({"x": 0.9})
    assert found.lower <= found.median < 10.0
    # The mean of so wide a distribution need not be between them, and is not what is printed.
    assert f"value {found.median:.4g}, between" in repr(found)
