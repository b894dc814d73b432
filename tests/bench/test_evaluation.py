import dataclasses
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import amortes
from amortes.bench import evaluation
from amortes.bench.evaluation import (
    FLOOR,
    PriorFunction,
    Setting,
    evaluate_optimisation,
    label,
    other_code,
    summarise,
)
from amortes.bench.sweep import Progress
from amortes.engines import local_engine
from amortes.errors import ConfigError, FileError
from amortes.prior.gp import Marginal, named_prior
from tests.bench.fake import fake_method

PRIOR = named_prior("robust")


def test_the_best_is_reached_and_not_exceeded() -> None:
    for d in (2, 4):
        problem = PriorFunction(PRIOR, d=d, index=0, noise_sd=0.1)
        assert (problem.d, problem.noise_sd) == (d, 0.1)
        X = torch.rand(20000, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        X = torch.cat([X, (2 * X[:10000] - 0.5).clamp(0, 1)])
        values = problem.value(X)
        x = X[values.topk(4).indices].clone().requires_grad_(True)
        for _ in range(300):
            (gradient,) = torch.autograd.grad(problem.value(x).sum(), x)
            x = (x + 0.002 * gradient).clamp(0, 1).detach().requires_grad_(True)
        found = float(problem.value(x.detach()).max())
        assert problem.best - 0.02 < found < problem.best + 1e-9


def test_a_function_is_the_same_under_any_noise_and_different_for_each_index() -> None:
    X = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first = PriorFunction(PRIOR, d=2, index=0, noise_sd=0.02)
    noisy = PriorFunction(PRIOR, d=2, index=0, noise_sd=0.3)
    other = PriorFunction(PRIOR, d=2, index=1, noise_sd=0.02)
    assert torch.equal(first.value(X), noisy.value(X))
    assert not torch.allclose(first.value(X), other.value(X))
    assert len({first.name, noisy.name, other.name}) == 3
    assert first.name == f"{label(PRIOR)}-d2-noise0.02-f0"


def test_labels_tell_priors_apart() -> None:
    changed = dataclasses.replace(PRIOR, mean=Marginal.fixed(0.0))
    renamed = dataclasses.replace(PRIOR, name="mine")
    assert label(changed) != label(PRIOR)
    assert label(renamed).removeprefix("mine") == label(PRIOR).removeprefix("robust")


HERE = local_engine(1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that were made; all are random search."""
    names: list[str] = []

    def make(name: str) -> Any:
        def run(problem: Any, seed: int) -> Any:
            names.append(name)
            return fake_method("random")(problem, seed)

        return run

    monkeypatch.setattr(evaluation, "named_method", make)
    return names


def setting(folder: Path, content: bytes = b"weights", **changes: Any) -> Setting:
    weights = folder / "w.safetensors"
    weights.write_bytes(content)
    defaults: dict[str, Any] = {
        "dims": (2, 3),
        "functions": 2,
        "evaluations": 6,
        "methods": ("jes", "logei", "random"),
    }
    return Setting(prior=named_prior("robust"), weights=weights, **(defaults | changes))


def test_problems_have_the_names_of_their_functions(tmp_path: Path) -> None:
    one = setting(tmp_path)
    assert len(one.tasks) == 2 * 2 * 2
    for name, task in one.tasks.items():
        made = PriorFunction(one.prior, **task)
        assert made.name == name


def test_runs_are_kept_by_content_of_the_weights_and_shared_if_they_do_not_use_them(
    tmp_path: Path, asked: list[str]
) -> None:
    heard: list[Progress] = []
    cache = tmp_path / "cache"
    first = setting(tmp_path)
    rows, failures = evaluate_optimisation(first, engine=HERE, cache=cache, progress=heard.append)
    assert not failures
    assert len(rows) == 3 * 2 * 2 * (5 + 4)
    assert [h.done for h in heard if h.run] == list(range(1, 25))
    assert {h.total for h in heard} == {24}
    weights = str(first.weights)
    assert set(asked) == {f"jes@{weights}", f"logei@{weights}", "random"}
    asked.clear()
    assert evaluate_optimisation(first, engine=HERE, cache=cache) == (rows, [])
    assert asked == []
    evaluate_optimisation(setting(tmp_path, functions=3), engine=HERE, cache=cache)
    assert len(asked) == 3 * 4  # one more function
    asked.clear()
    evaluate_optimisation(setting(tmp_path, b"others"), engine=HERE, cache=cache)
    assert "random" not in asked
    assert len(asked) == 2 * 8


@pytest.mark.usefixtures("asked")
def test_folders_of_methods_not_asked_for_are_left_alone(tmp_path: Path) -> None:
    """Another sweep may be writing to them."""
    cache = tmp_path / "cache"
    for method, folders in (("random", 1), ("jes", 2)):
        one = setting(tmp_path, methods=(method,), functions=1)
        evaluate_optimisation(one, engine=HERE, cache=cache)
        assert len(list((cache / "bo").iterdir())) == folders


def test_the_summary_is_of_logarithms(tmp_path: Path, asked: list[str]) -> None:
    one = setting(tmp_path)
    rows, _ = evaluate_optimisation(one, engine=HERE, cache=tmp_path / "cache")
    for row in rows:  # make logei better than jes on the first function, equal on the second
        if row["method"] == "logei" and row["seed"] == 0:
            row["regret"] = 0.0
    table = summarise(rows, one)
    assert [(r["d"], r["noise"]) for r in table[::3]] == [
        ("2", "0.02"),
        ("2", "0.3"),
        ("3", "0.02"),
        ("3", "0.3"),
        ("all", "all"),
    ]
    by = {(r["d"], r["noise"], r["method"]): r for r in table}
    logs = [
        math.log10(r["regret"])
        for r in rows
        if (r["d"], r["noise_sd"], r["method"], r["iteration"]) == (3, 0.3, "jes", 3)
    ]
    cell = by["3", "0.3", "jes"]
    assert cell["functions"] == len(logs) == 2
    assert cell["regret_3"] == pytest.approx(statistics.mean(logs))
    assert cell["error_3"] == pytest.approx(abs(logs[0] - logs[1]) / 2)
    assert by["all", "all", "jes"]["wins"] == 0.25
    assert by["all", "all", "jes"]["functions"] == 8
    assert by["all", "all", "logei"]["wins"] is None
    low = by["2", "0.02", "logei"]["regret_6"]
    ends = [r for r in rows if r["iteration"] == 6 and r["method"] == "logei"]
    other = next(
        r["regret"] for r in ends if r["seed"] == 1 and (r["d"], r["noise_sd"]) == (2, 0.02)
    )
    assert low == pytest.approx((math.log10(FLOOR) + math.log10(other)) / 2)


def row(
    task: tuple[int, float, int], iteration: int, regret: float, method: str = "jes"
) -> dict[str, Any]:
    """A row of a method on function `index` in dimension d with a noise, which takes a second."""
    d, noise, index = task
    name = f"{label(named_prior('robust'))}-d{d}-noise{noise:g}-f{index}"
    return {
        "problem": name,
        "method": method,
        "seed": index,
        "iteration": iteration,
        "regret": regret,
        "fit_seconds": 0.5,
        "search_seconds": 0.3,
        "recommend_seconds": 0.2,
        "version": "1",
        "commit": "abc",
    }


def test_the_error_over_all_is_that_of_functions_within_dimensions(tmp_path: Path) -> None:
    one = setting(tmp_path, methods=("jes",), functions=3)
    rng = np.random.default_rng(0)
    # Dimensions differ much, functions little; a function is the same under both noises.
    logs = {d: -d + 0.1 * rng.standard_normal((3, 1)) + [[0.0, 0.5]] for d in one.dims}
    rows = [
        row((d, noise, index), n, 10 ** logs[d][index, place])
        for d in one.dims
        for place, noise in enumerate(one.noises)
        for index in range(3)
        for n in (3, 6)
    ]
    every = summarise(rows, one)[-1]
    assert every["regret_6"] == pytest.approx(np.mean([logs[d].mean() for d in one.dims]))
    errors = [stats.sem(logs[d].mean(1)) for d in one.dims]
    assert every["error_6"] == pytest.approx(math.hypot(*errors) / 2)
    assert every["functions"] == 12


def test_the_difference_is_paired_by_function(tmp_path: Path) -> None:
    one = setting(tmp_path, methods=("jes", "logei"), functions=3)
    rng = np.random.default_rng(0)
    # Functions differ much, methods little; a function is the same under both noises.
    theirs = {d: rng.standard_normal((3, 1)) + np.array([[0.0, 0.5]]) for d in one.dims}
    gaps = {d: -0.2 + 0.1 * rng.standard_normal((3, 2)) for d in one.dims}
    rows = [
        row((d, noise, index), n, 10 ** logs[d][index, place], method)
        for method, logs in (("jes", {d: theirs[d] + gaps[d] for d in gaps}), ("logei", theirs))
        for d in one.dims
        for place, noise in enumerate(one.noises)
        for index in range(3)
        for n in (3, 6)
    ]
    table = summarise(rows, one)
    jes, logei = table[-2:]
    assert jes["difference"] == pytest.approx(np.mean([gaps[d] for d in one.dims]))
    errors = [stats.sem(gaps[d].mean(1)) for d in one.dims]  # six functions, not twelve pairs
    assert jes["error_difference"] == pytest.approx(math.hypot(*errors) / 2)
    assert jes["error_difference"] < jes["error_6"] / 2
    assert (logei["difference"], logei["error_difference"]) == (None, None)
    assert table[0]["error_difference"] == pytest.approx(stats.sem(gaps[2][:, 0]))


def test_a_longer_run_that_was_kept_is_cut(tmp_path: Path) -> None:
    one = setting(tmp_path, methods=("jes",), functions=1, dims=(2,), noises=(0.1,))
    rows = [row((2, 0.1, 0), n, 0.1) for n in range(2, 7)]
    later = [row((2, 0.1, 0), n, 0.1) | {"fit_seconds": 99.0} for n in (7, 8)]
    assert [r["seconds"] for r in summarise(rows + later, one)] == [1.0, 1.0]


def test_runs_of_other_code_are_counted(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = setting(tmp_path, dims=(2,), functions=1)
    rows, _ = evaluate_optimisation(one, engine=HERE, cache=tmp_path / "cache")
    assert other_code(rows) == {}
    monkeypatch.setattr(evaluation, "commit", lambda: "later")
    then = rows[0]["commit"] or "unknown"
    assert other_code(rows) == {f"{amortes.__version__}, commit {then}": 2 * 3}


def test_unknown_methods_and_damaged_weights_are_found_before_anything_runs(tmp_path: Path) -> None:
    one = setting(tmp_path, methods=("random", "jez"))
    with pytest.raises(ConfigError, match="not 'jez'"):
        evaluate_optimisation(one, engine=HERE, cache=tmp_path / "cache")
    one = setting(tmp_path, methods=("random", "logei"))
    with pytest.raises(FileError, match=r"w\.safetensors"):
        evaluate_optimisation(one, engine=HERE, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_failed_runs_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str) -> Any:
        def broken(problem: Any, seed: int) -> Any:
            raise ZeroDivisionError

        return broken if name.startswith("logei") else fake_method("random")

    monkeypatch.setattr(evaluation, "named_method", make)
    one = setting(tmp_path, dims=(2,), noises=(0.1,))
    rows, failures = evaluate_optimisation(one, engine=HERE, cache=tmp_path / "cache")
    assert len(failures) == 2
    by = {r["method"]: r for r in summarise(rows, one) if r["d"] == "2"}
    assert (by["logei"]["functions"], by["logei"]["regret_6"], by["logei"]["seconds"]) == (
        0,
        None,
        None,
    )
    assert (by["jes"]["difference"], by["jes"]["wins"]) == (None, None)


def test_dimensions_follow_the_prior(tmp_path: Path) -> None:
    (tmp_path / "w").touch()
    assert Setting(prior=named_prior("robust"), weights=tmp_path / "w").dims == (2, 4, 6, 10)
    assert Setting(prior=named_prior("paper"), weights=tmp_path / "w").dims == (2, 4, 6)
    with pytest.raises(ConfigError, match="d=10 is outside"):
        Setting(prior=named_prior("paper"), weights=tmp_path / "w", dims=(10,))
    with pytest.raises(ConfigError, match="at least d, not 5"):
        setting(tmp_path, dims=(6,), evaluations=5)
    with pytest.raises(ConfigError, match="Nothing to run"):
        setting(tmp_path, methods=())
