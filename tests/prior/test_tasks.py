import dataclasses
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.prior.traces import TraceConfig

SMALL = TaskConfig(batch_size=6, num_queries=8, max_context=12)


def tensors(task: TaskBatch) -> list[Tensor]:
    return [
        task.X, task.y, task.Xq, task.near_optimum, task.fq, task.optimum.x, task.optimum.f,
        *task.hyper.tensors().values(), task.posterior_mean, task.posterior_variance,
    ]  # fmt: skip


def digest(task: TaskBatch) -> str:
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in tensors(task))).hexdigest()


@pytest.mark.parametrize("prior", [PRIORS["robust"], PRIORS["real"]], ids=lambda p: p.name)
def test_shapes_and_the_optimum_is_never_beaten(prior: GPPrior) -> None:
    stream = TaskStream(prior, 1, SMALL)
    seen = set()
    for step in range(12):
        task = stream.batch(step)
        _, n, d = task.X.shape
        seen.add((n, d))
        assert task.y.shape == (6, n)
        assert task.Xq.shape == (6, 8, d)
        assert task.optimum.x.shape == (6, d)
        assert task.posterior_mean.shape == task.posterior_variance.shape == task.fq.shape == (6, 8)
        assert (task.optimum.f[:, None] >= task.fq).all()
        assert (task.posterior_variance > 0).all()
        assert all(t.dtype == torch.float64 for t in tensors(task) if t.is_floating_point())
        assert all(t.isfinite().all() for t in tensors(task))
    assert len(seen) > 6


def test_two_processes_get_the_same_step_bit_for_bit() -> None:
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from tests.prior.test_tasks import SMALL, PRIORS, TaskStream, digest;"
        "print(digest(TaskStream(PRIORS['paper'], 5, SMALL).batch(1234)))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={"OMP_NUM_THREADS": threads, "PATH": ""},
        )
        for threads in ("1", "2")
    ]
    here = digest(TaskStream(PRIORS["paper"], 5, SMALL).batch(1234))
    assert {r.stdout.strip() for r in runs} == {here}


def test_workers_and_order_of_access_do_not_matter() -> None:
    stream = TaskStream(PRIORS["paper"], 2, dataclasses.replace(SMALL, batch_size=2))
    alone = [digest(stream.batch(step)) for step in (4, 3, 2)][::-1]
    assert [digest(t) for t in stream.batches(range(2, 5))] == alone
    assert [digest(t) for t in stream.batches(range(2, 5), workers=2)] == alone
    assert [digest(t) for t in stream.batches(range(2, 5, 2))] == alone[::2]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_workers_leave_signals_to_their_user(signum: signal.Signals) -> None:
    stream = TaskStream(PRIORS["paper-1d"], 2, dataclasses.replace(SMALL, batch_size=2))
    batches = stream.batches(range(8), workers=1)
    seen = [digest(next(batches))]
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signum)
    seen += [digest(task) for task in batches]
    assert seen == [digest(stream.batch(step)) for step in range(8)]


@pytest.mark.parametrize("name", ["paper", "real"])
def test_context_values_are_the_path_plus_noise_and_the_posterior_is_calibrated(name: str) -> None:
    config = TaskConfig(batch_size=400, num_queries=16, trace=TraceConfig(optimum_share=0.0))
    task = TaskStream(PRIORS[name], 3, config).batch_of(0, 2, 15)
    z = (task.fq - task.posterior_mean) / task.posterior_variance.sqrt()
    per_dataset = z.square().mean(1)  # dependent within a dataset, independent between them
    assert abs(per_dataset.mean() - 1) < 5 * per_dataset.std() / 400**0.5
    # 500 features are not quite the prior of the posterior, which shows where that is sure.
    unsure = task.posterior_variance > 1e-4
    assert unsure.double().mean() > 0.7
    inside = (z[unsure].abs() < 1).double().mean()
    assert inside == pytest.approx(0.683, abs=0.03)


def test_queries_placed_at_the_optimum_are_not_calibrated_without_it() -> None:
    config = TaskConfig(batch_size=400, num_queries=16, trace=TraceConfig(optimum_share=1.0))
    task = TaskStream(PRIORS["paper"], 3, config).batch_of(0, 4, 10)
    z = (task.fq - task.posterior_mean) / task.posterior_variance.sqrt()
    assert z[task.near_optimum].mean() > 0.3 > z[~task.near_optimum].mean().abs() + 0.1


def test_dimension_and_context_can_be_skewed() -> None:
    config = TaskConfig(batch_size=1, num_queries=1, max_context=200, context_skew=3, dim_decay=2)
    stream = TaskStream(GPPrior(max_dim=4), 0, config)
    shapes = [stream.batch(step).X.shape for step in range(60)]
    assert sum(n <= 50 for _, n, _ in shapes) > 30  # (1/4)^(1/3) = 63 % expected
    assert sum(d == 1 for *_, d in shapes) > 30  # 1 / (1 + 1/4 + 1/9 + 1/16) = 70 % expected


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch_size", 0), ("num_queries", -1), ("min_context", 0), ("max_context", 201),
     ("context_skew", 0.0), ("dim_decay", float("nan"))],
)  # fmt: skip
def test_invalid_values_name_the_field(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        TaskConfig(**{field: value})  # type: ignore[arg-type]


def test_paths_of_a_batch_are_independent_of_the_context_size() -> None:
    # batch_of is keyed by (step, d, n): other sizes are other functions, not truncations.
    stream = TaskStream(PRIORS["paper"], 0, SMALL)
    assert not torch.equal(stream.batch_of(0, 2, 3).optimum.f, stream.batch_of(0, 2, 4).optimum.f)


def test_contexts_alone_are_not_maximised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("amortes.prior.tasks.maximise_paths")
    config = dataclasses.replace(SMALL, num_queries=0)
    stream = TaskStream(PRIORS["real"], 6, config)
    for step in range(4):
        task = stream.batch(step)
        _, n, d = task.X.shape
        assert task.y.shape == (6, n)
        assert task.y.isfinite().all()
        assert task.Xq.shape == (6, 0, d)
        assert task.fq.shape == task.near_optimum.shape == task.posterior_mean.shape == (6, 0)
        assert task.optimum.x.isnan().all()
        assert task.optimum.f.isnan().all()
        assert digest(task) == digest(stream.batch(step))


def test_contexts_alone_are_those_of_functions_with_these_hyperparameters() -> None:
    config = TaskConfig(batch_size=400, num_queries=0)
    task = TaskStream(PRIORS["real"], 6, config).batch_of(0, 2, 12)
    mean, variance = exact_posterior(
        "mixed", task.hyper, task.X[:, :11], task.y[:, :11], task.X[:, 11:]
    )
    sd = (variance + task.hyper.noise_sd.square()[:, None]).sqrt()
    surprise = ((task.y[:, 11:] - mean) / sd).square()
    assert abs(surprise.mean() - 1.0) < 5 * surprise.std() / 400**0.5
