import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from amortes.errors import ConfigError
from amortes.prior.tasks import TaskBatch
from amortes.training.distributed import Ranks, find_device, joined, place, take_rows
from amortes.training.loop import train
from amortes.training.run import TrainingRun
from amortes.training.tensorfile import read_tensors
from tests.training import child


def test_rows_of_every_tensor_are_taken(task: TaskBatch) -> None:
    part = take_rows(task, slice(1, 3))
    assert torch.equal(part.X, task.X[1:3])
    assert torch.equal(part.near_optimum, task.near_optimum[1:3])
    assert torch.equal(part.optimum.f, task.optimum.f[1:3])
    assert torch.equal(part.hyper.lengthscale, task.hyper.lengthscale[1:3])
    assert torch.equal(part.noise_variance, task.noise_variance[1:3])


def test_place_casts_numbers_but_not_flags_and_hyperparameters(task: TaskBatch) -> None:
    placed = place(task, torch.device("cpu"), torch.float32)
    assert placed.X.dtype == placed.fq.dtype == placed.optimum.x.dtype == torch.float32
    assert placed.near_optimum.dtype == torch.bool
    assert placed.hyper.noise_sd.dtype == torch.float64
    assert torch.equal(placed.X, task.X.float())


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("batch_size", "world"), [(5, 2), (100, 3), (4, 4)])
def test_shares_cover_the_batch_once(batch_size: int, world: int) -> None:
    shares = [Ranks(rank, world).rows(batch_size) for rank in range(world)]
    rows = [i for share in shares for i in range(batch_size)[share]]
    assert rows == list(range(batch_size))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_share_knows_its_weight(task: TaskBatch) -> None:
    parts = [Ranks(rank, 3).share(task) for rank in range(3)]
    assert sum(weight for _, weight in parts) == pytest.approx(1.0)
    assert torch.equal(torch.cat([part.X for part, _ in parts]), task.X)


def test_too_few_rows() -> None:
    with pytest.raises(ConfigError, match=r"batch_size: 2 rows are too few for 3 processes"):
        Ranks(0, 3).rows(2)


def test_alone_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as ranks:
        assert (ranks.rank, ranks.world, ranks.first) == (0, 1, True)
        assert ranks.sum([1.0, 2.0]) == [1.0, 2.0]
        ranks.wait()


@pytest.mark.parametrize("name", ["foo", "", "meta", "cuda:x"])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="device: must be cpu or cuda"):
        find_device(name)
    assert find_device("cpu") == torch.device("cpu")


def run_two(folder: Path, *event: str) -> subprocess.CompletedProcess[str]:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, "-m", "tests.training.child", str(folder), *event]
    return subprocess.run(
        command, cwd=ROOT, check=False, timeout=180, capture_output=True, text=True
    )


def saved_step(folder: Path) -> int:
    _, about = read_tensors(TrainingRun.open(folder).newest, kind="amortes-run-state", version=1)
    return int(about["step"])


def test_an_error_on_one_rank_saves_and_stops_all(tmp_path: Path) -> None:
    result = run_two(tmp_path / "run", "poison", "7")  # in a row of rank 1, which writes no files
    assert result.returncode == 1
    assert saved_step(tmp_path / "run") == 7
    for reason in ("sds must be positive", "Another process failed"):
        assert f"TrainingError: {reason}" in result.stderr
    assert result.stderr.count("The last good state is kept") >= 2


def test_an_interrupt_of_all_saves_and_stops(tmp_path: Path) -> None:
    result = run_two(tmp_path / "run", "interrupt", "3")
    assert result.returncode == 1
    assert 3 <= saved_step(tmp_path / "run") < 20
    assert "exited unexpectedly" not in result.stderr  # the workers


def test_two_processes_equal_one(tmp_path: Path) -> None:
    # 5 rows, so that shares differ.
    result = run_two(tmp_path / "two")
    assert result.returncode == 0, result.stderr
    train(tmp_path / "one", child.RECIPE, threads=1)
    runs = [TrainingRun.open(tmp_path / name) for name in ("one", "two")]
    one, two = (read_tensors(r.newest, kind="amortes-run-state", version=1) for r in runs)
    assert one[1]["step"] == two[1]["step"] == 20
    assert one[1]["best_score"] == pytest.approx(two[1]["best_score"], rel=1e-5)
    for name, tensor in one[0].items():
        torch.testing.assert_close(two[0][name], tensor, rtol=1e-5, atol=1e-6)
    logs = [[json.loads(line) for line in r.metrics.read_text().splitlines()] for r in runs]
    assert len(logs[0]) == len(logs[1])
    for a, b in zip(*logs, strict=True):
        assert a["step"] == b["step"]
        assert a.keys() == b.keys()
        for name in a.keys() - {"seconds", "datasets_per_second"}:
            assert b[name] == pytest.approx(a[name], rel=1e-4), name
