import dataclasses
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.corpora.corpus import Corpus
from amortes.corpora.generate import generate
from amortes.corpora.plan import CorpusConfig
from amortes.engines import local_engine
from amortes.errors import ConfigError, DataError, TrainingError
from amortes.prior.tasks import TaskBatch, TaskStream
from amortes.training.learner import Learner
from amortes.training.loop import VALIDATION_SEED, Status, train
from amortes.training.objectives import Metrics, base_loss
from amortes.training.recipes import build_network
from amortes.training.run import TrainingRun
from amortes.training.tensorfile import read_tensors
from tests.training import child
from tests.training.fake import fake_recipe

ROOT = Path(__file__).parents[2]


def state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    return read_tensors(TrainingRun.open(folder).newest, kind="amortes-run-state", version=1)


def lines(folder: Path) -> list[dict[str, Any]]:
    """The metrics without what depends on the clock."""
    clock = ("seconds", "datasets_per_second")
    text = TrainingRun.open(folder).metrics.read_text()
    return [
        {k: v for k, v in json.loads(line).items() if k not in clock} for line in text.splitlines()
    ]


def assert_same(first: Path, second: Path) -> None:
    """The two runs are in the same state, bit for bit."""
    (a, about_a), (b, about_b) = state(first), state(second)
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name
    assert about_a["step"] == about_b["step"]
    assert about_a["best_score"] == about_b["best_score"]
    assert TrainingRun.open(first).best.read_bytes() == TrainingRun.open(second).best.read_bytes()


def raising_at(step: int, action: Callable[[], None]) -> Callable[[Status], None]:
    def report(status: Status) -> None:
        if status.step == step:
            action()

    return report


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    outcome = train(folder, child.RECIPE, threads=1)
    assert (outcome.reason, outcome.step) == ("finished", 20)
    return folder


def test_killed_run_goes_on_exactly(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "killed"
    # Dies after step 13; the newest state is that of step 10, the newest metrics may be later.
    command = [sys.executable, "-m", "tests.training.child", str(folder), "kill", "13"]
    died = subprocess.run(command, cwd=ROOT, check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL
    assert state(folder)[1]["step"] == 10
    outcome = train(folder, child.RECIPE, threads=1)
    assert (outcome.reason, outcome.step) == ("finished", 20)
    assert_same(folder, undisturbed)
    assert lines(folder) == lines(undisturbed)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_saves_and_stops(tmp_path: Path, undisturbed: Path, signum: signal.Signals) -> None:
    report = raising_at(7, lambda: signal.raise_signal(signum))
    outcome = train(tmp_path, child.RECIPE, threads=1, report=report)
    assert (outcome.reason, outcome.step) == ("interrupted", 7)
    assert state(tmp_path)[1]["step"] == 7
    assert [line["step"] for line in lines(tmp_path)] == [5, 7]
    assert train(tmp_path, child.RECIPE, threads=1).reason == "finished"
    assert_same(tmp_path, undisturbed)


def test_second_signal_stops_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, fake_recipe(), report=raising_at(3, twice))
    assert state(tmp_path)[1]["step"] == 0


def test_hours(tmp_path: Path) -> None:
    outcome = train(tmp_path, fake_recipe(), hours=0.0)
    assert (outcome.reason, outcome.step) == ("out of time", 0)
    left: list[float] = []

    def report(status: Status) -> None:
        left.append(status.seconds_left)
        time.sleep(max(0.0, began + 1.1 - time.monotonic()))

    began = time.monotonic()
    outcome = train(tmp_path, fake_recipe(), hours=1 / 3600, report=report)
    assert (outcome.reason, outcome.step) == ("out of time", 1)
    assert left[0] <= 1.0
    assert state(tmp_path)[1]["seconds"] >= 1.0


def test_finished_run_has_nothing_left_to_do(tmp_path: Path, undisturbed: Path) -> None:
    before = lines(undisturbed)
    outcome = train(undisturbed, child.RECIPE)
    assert (outcome.reason, outcome.step) == ("finished", 20)
    assert lines(undisturbed) == before


def test_workers_change_nothing(tmp_path: Path, undisturbed: Path) -> None:
    recipe = dataclasses.replace(child.RECIPE, steps=3)
    for workers in (0, 1):
        train(tmp_path / str(workers), recipe, threads=1, workers=workers)
    assert_same(tmp_path / "0", tmp_path / "1")


def test_metrics(undisturbed: Path) -> None:
    log = [line for line in lines(undisturbed) if "loss" in line]
    assert [line["step"] for line in log] == [5, 10, 15, 20]
    assert log[0].keys() >= {"lr", "loss", "gradient_norm", "excess_none", "excess_both"}
    assert any("excess_pending" in line for line in log)
    raw = [
        json.loads(line) for line in TrainingRun.open(undisturbed).metrics.read_text().splitlines()
    ]
    assert all(line["datasets_per_second"] > 0 for line in raw if "loss" in line)


def test_validation_keeps_the_best_average(tmp_path: Path) -> None:
    # Without a gradient the weights stay, so the second validation is no better than the first.
    recipe = fake_recipe(lr=1e-30, weight_decay=0.0)
    seen: list[Status] = []
    outcome = train(tmp_path, recipe, report=seen.append)
    validations = {s.step: s.validation for s in seen if s.validation is not None}
    assert validations.keys() == {10, 20}
    weights, step = TrainingRun.open(tmp_path).weights()
    assert step == 10
    network = build_network("fake", recipe.config, recipe.prior).double()
    network.load_state_dict(weights)
    stream = TaskStream(recipe.prior, VALIDATION_SEED, recipe.tasks)
    scores = [float(base_loss(network, stream.batch(i))[0].detach()) for i in range(2)]
    assert outcome.best_score == pytest.approx(sum(scores) / 2, rel=1e-4)
    assert validations[10] is not None
    assert validations[10]["loss"] == outcome.best_score
    logged = [line for line in lines(tmp_path) if "validation" in line]
    assert [line["step"] for line in logged] == [10, 20]


def test_alpha_stage(tmp_path: Path, undisturbed: Path) -> None:
    recipe = fake_recipe("alpha")
    outcome = train(tmp_path / "alpha", recipe, base=undisturbed)
    assert outcome.reason == "finished"
    base, _ = TrainingRun.open(undisturbed).weights()
    alpha, _ = TrainingRun.open(tmp_path / "alpha").weights()
    changed = {name for name in base if not torch.equal(base[name], alpha[name])}
    assert changed == {n for n in base if n.startswith("alpha.")} | {"alpha_started"}
    described = TrainingRun.open(tmp_path / "alpha").config["base"]
    assert described["recipe"] == child.RECIPE.to_dict()
    final = lines(tmp_path / "alpha")[-1]["validation"]
    assert final.keys() == {"loss"} | {
        f"{gain}_{what}" for gain in ("pes", "mes", "jes") for what in ("target", "r2")
    }
    assert train(tmp_path / "alpha", recipe, base=undisturbed).step == 20


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_finite_stops_with_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    make = TaskStream.batch

    def poisoned(self: TaskStream, step: int) -> TaskBatch:
        task = make(self, step)
        if step == 7:
            task.y[2, 0] = value
        return task

    monkeypatch.setattr(TaskStream, "batch", poisoned)
    good = dataclasses.replace(fake_recipe(), pending_share=0.0)
    with pytest.raises(TrainingError) as error:
        train(tmp_path / "bad", good)
    task = make(TaskStream(good.prior, good.seed, good.tasks), 7)
    message = str(error.value)
    assert "nan" in message
    assert f"step 7, batch 7 (d={task.X.shape[2]}, n={task.X.shape[1]}) of seed 0" in message
    assert "newest.safetensors" in message
    tensors, about = state(tmp_path / "bad")
    assert about["step"] == 7
    assert all(torch.isfinite(t).all() for t in tensors.values())
    assert [line["step"] for line in lines(tmp_path / "bad")] == [5, 7]
    # The state kept is that of an undisturbed run after seven steps.
    monkeypatch.undo()
    train(tmp_path / "ok", good, report=raising_at(7, lambda: signal.raise_signal(signal.SIGINT)))
    for name, tensor in state(tmp_path / "ok")[0].items():
        assert torch.equal(tensor, tensors[name]), name


@pytest.mark.parametrize("step", [10, 20])
def test_a_validation_that_failed_is_repeated(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    validate = Learner.validate

    def fail(self: Learner, task: TaskBatch) -> Metrics:
        if self.step == step:
            raise DataError("Too hard.")
        return validate(self, task)

    monkeypatch.setattr(Learner, "validate", fail)
    shape = r"\(d=\d, n=\d\)"
    message = rf"Too hard\. .* after step {step}, batch 0 {shape} of seed {VALIDATION_SEED}\."
    for _ in range(2):
        with pytest.raises(TrainingError, match=message):
            train(tmp_path, child.RECIPE, threads=1)
        assert state(tmp_path)[1]["step"] == step
    monkeypatch.undo()
    assert train(tmp_path, child.RECIPE, threads=1).reason == "finished"
    assert_same(tmp_path, undisturbed)
    assert lines(tmp_path) == lines(undisturbed)


def test_training_learns(tmp_path: Path) -> None:
    recipe = fake_recipe(steps=60, validate_every=60, lr=3e-2, pending_share=0.0)
    seen: list[Status] = []
    train(tmp_path, recipe, report=seen.append)
    assert seen[-1].loss < 0.7 * seen[0].loss
    assert seen[-1].step == seen[-1].steps == 60


def test_settings_of_the_caller_are_restored(tmp_path: Path) -> None:
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGTERM)
    random_state = torch.random.get_rng_state()
    train(tmp_path, fake_recipe(steps=1), threads=threads + 1)
    assert torch.get_num_threads() == threads
    assert signal.getsignal(signal.SIGTERM) is handler
    assert torch.equal(random_state, torch.random.get_rng_state())


def test_paths_from_a_corpus(tmp_path: Path) -> None:
    recipe = fake_recipe(steps=2, validate_every=5)
    generate(
        tmp_path / "corpus", CorpusConfig(prior=recipe.prior, num_paths=20), engine=local_engine(1)
    )
    corpus = Corpus.open(tmp_path / "corpus")
    train(tmp_path / "run", recipe, corpus=corpus)
    assert TrainingRun.open(tmp_path / "run").config["corpus"] == corpus.config.digest
    train(tmp_path / "other", recipe)
    assert not torch.equal(
        state(tmp_path / "run")[0]["network.base.0.weight"],
        state(tmp_path / "other")[0]["network.base.0.weight"],
    )
    with pytest.raises(ConfigError, match="corpus"):
        train(tmp_path / "run", recipe)
    larger = dataclasses.replace(recipe, prior=dataclasses.replace(recipe.prior, max_dim=3))
    with pytest.raises(ConfigError, match=r"d in \(1, 2\) only"):
        train(tmp_path / "larger", larger, corpus=corpus)
    assert not (tmp_path / "larger").exists()


def test_device_that_is_not_there(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match="no GPU"):
        train(tmp_path, fake_recipe(), device="cuda")
