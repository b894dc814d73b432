import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch

from amortes.bench.methods.smac import SmacMethod
from amortes.bench.protocol import MethodFactory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct, run

FACADES = pytest.mark.parametrize("facade", ["bb", "hpo"])


def factory(facade: str) -> MethodFactory:
    return lambda problem, seed: SmacMethod(problem, seed, facade)


@FACADES
def test_conduct(facade: str) -> None:
    check_conduct(factory(facade), Quadratic(1, noise_sd=0.1), steps=6)


@FACADES
def test_pool(facade: str) -> None:
    check_conduct(factory(facade), Quadratic(2, pool=40), steps=3)


@FACADES
def test_learns_from_what_it_is_told(facade: str) -> None:
    """After 30 random points, it looks near the optimum rather than anywhere."""
    problem = Quadratic(2)
    X = torch.rand(30, 2, generator=generator(0), dtype=torch.float64)
    y = problem.value(X)
    chosen = torch.stack([factory(facade)(problem, seed).step(X, y).x for seed in range(3)])
    assert len(set(map(tuple, chosen.tolist()))) == 3
    # Uniform points have a mean squared distance of 0.25.
    assert -problem.value(chosen).mean() < 0.1


@FACADES
def test_sees_the_points_of_the_run_and_no_others(facade: str) -> None:
    problem = Quadratic(2)
    method = SmacMethod(problem, 0, facade)
    X = torch.rand(3, 2, generator=generator(0), dtype=torch.float64)
    for _ in range(2):
        X = torch.cat([X, method.step(X, problem.value(X)).x[None]])
    history = method.smac.runhistory
    seen = torch.tensor(np.array([config.get_array() for config in history.get_configs()]))
    assert torch.allclose(seen, X, rtol=0, atol=1e-8)
    # The last point is asked for, but not yet told.
    assert history.finished == len(X) - 1
    costs = torch.tensor([history.get_cost(config) for config in history.get_configs()[:-1]])
    assert torch.allclose(costs.double(), -problem.value(X[:-1]), rtol=0, atol=1e-6)


@FACADES
def test_leaves_nothing_behind(
    facade: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither files, nor messages, nor threads, nor another state of what others use."""
    root, logger = logging.getLogger(), logging.getLogger("smac")

    def state() -> tuple[object, ...]:
        logs = root.level, tuple(root.handlers), logger.level, tuple(logger.handlers)
        jobs = joblib.effective_n_jobs(-1)
        numpy_state = repr(np.random.get_state())  # noqa: NPY002
        return random.getstate(), numpy_state, logs, jobs

    def start(thread: threading.Thread) -> None:
        raise AssertionError(f"{thread} was started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(threading.Thread, "start", start)
    before = state()
    run(factory(facade), Quadratic(2), steps=1)
    assert state() == before
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_other_processes_get_the_same() -> None:
    """Hashes of strings differ between processes; both facades have the search they decide in."""
    code = (
        "from tests.bench.methods.test_smac import *\n"
        "print(run(factory('hpo'), Quadratic(2), steps=2)[-1].x.tolist())"
    )
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    here = run(factory("hpo"), Quadratic(2), steps=2)[-1].x
    assert output.strip() == str(here.tolist())
