import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.base import GAINS
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.gains.drawn_gains import DrawnGains
from amortes.nets.kernel.gains.learned_gains import LearnedGains
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.network import DRAWN_PARTICLES
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator
from amortes.training import lessons, loop
from amortes.training.distributed import place, take_rows
from amortes.training.learner import Learner, Meter
from amortes.training.lessons import (
    NAMES,
    Lesson,
    LessonStream,
    lesson_queries,
    make_lesson,
    noisy,
)
from amortes.training.loop import train
from amortes.training.objectives import lesson_loss, overlap_entropies
from amortes.training.recipes import Recipe, build_network, recipe
from amortes.training.run import TrainingRun
from amortes.training.stages import Base
from tests.training.fake import export_untrained

PRIOR = dataclasses.replace(PRIORS["real"], max_dim=3)
TASKS = TaskConfig(batch_size=2, num_queries=0, min_context=4, max_context=9)
FEW = RepresenterConfig(count=16, num_global=32, per_centre=4, draws=16, optima=8)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A teacher that takes less time."""
    monkeypatch.setattr(lessons, "TEACHER", FEW)


def small() -> Recipe:
    chosen = recipe("kernel", "alpha", PRIOR)
    particles = ParticleConfig(candidates=1)
    config = dataclasses.replace(chosen.config, encoder=None, particles=particles)
    return dataclasses.replace(
        chosen,
        config=config,
        tasks=TASKS,
        steps=6,
        lessons=3,
        validation_batches=1,
        save_every=2,
    )


@pytest.fixture
def network() -> KernelNetwork:
    built = build_network("kernel", small().config, PRIOR, seed=1)
    assert isinstance(built, KernelNetwork)
    return built.eval()


@pytest.fixture
def task() -> TaskBatch:
    return TaskStream(PRIOR, 5, TASKS).batch_of(0, 2, 6)


def standardised(network: KernelNetwork, task: TaskBatch) -> Conditioned:
    y = (task.y - task.y.mean(1, keepdim=True)) / task.y.std(1, keepdim=True)
    return network.condition(task.X, y).conditioned.thinned(DRAWN_PARTICLES)


def stream(network: KernelNetwork, folder: Path) -> LessonStream:
    return LessonStream(network, 3, TASKS, folder, lessons=3, steps=6)


def equal(a: Lesson, b: Lesson) -> bool:
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in NAMES)


def test_a_lesson_is_what_the_teacher_says(network: KernelNetwork, task: TaskBatch) -> None:
    lesson = make_lesson(network, task, 1, 2)
    assert len(lesson) == 2
    conditioned, rng = standardised(network, task), generator(1, 2)
    for i in range(2):
        one = conditioned.dataset(i)
        Xq = lesson_queries(one, rng)
        torch.testing.assert_close(lesson.mean[i : i + 1], one.moments(Xq).mean.float())
        teacher = DrawnGains(one, thompson_draws(one, FEW))
        for g, name in enumerate(GAINS):
            expected = teacher.mean(name, Xq)[0].float()
            torch.testing.assert_close(lesson.gain[i, g], expected, rtol=1e-3, atol=1e-5)
    sums = lesson.weights[:, None].expand(-1, 3, -1)
    torch.testing.assert_close(lesson.joint.sum(-1), sums, atol=3e-3, rtol=0)
    assert equal(lesson, make_lesson(network, task, 1, 2))


def test_queries_are_in_the_cube_and_some_are_promising(
    network: KernelNetwork, task: TaskBatch
) -> None:
    conditioned = network.condition(task.X, task.y).conditioned.dataset(1)
    Xq = lesson_queries(conditioned, generator(1))
    assert Xq.shape == (1, lessons.QUERIES, 2)
    assert ((Xq >= 0) & (Xq <= 1)).all()
    anywhere = torch.rand(1, 500, 2, generator=generator(2), dtype=torch.float64)
    (mean, sd), (other_mean, other_sd) = map(conditioned.rough_moments, (Xq, anywhere))
    for c in (0.0, 2.0):
        assert (mean + c * sd).amax() > (other_mean + c * other_sd).quantile(0.95)


def test_loss_is_about_the_gains_in_use(network: KernelNetwork, task: TaskBatch) -> None:
    lesson = place(make_lesson(network, task, 1, 2), CPU, torch.float32)
    loss, metrics = lesson_loss(network, lesson)
    assert loss.requires_grad
    conditioned, rng, found = standardised(network, task), generator(1, 2), []
    assert network.gain_network is not None
    for i in range(2):
        one = conditioned.dataset(i)
        Xq = lesson_queries(one, rng)
        gains = LearnedGains(one, network.gain_network)
        found.append(torch.cat([gains.mean(name, Xq) for name in GAINS]).detach())
    error = (torch.stack(found).float() - lesson.gain).square().mean((0, 2))
    for g, name in enumerate(GAINS):
        assert float(metrics[f"{name}_error"]) == pytest.approx(float(error[g]), rel=0.05)
    parts = [lesson_loss(network, take_rows(lesson, slice(i, i + 1)))[0] for i in range(2)]
    torch.testing.assert_close((parts[0] + parts[1]) / 2, loss)


def test_loss_of_who_knows_is_zero(network: KernelNetwork, task: TaskBatch) -> None:
    lesson = place(make_lesson(network, task, 1, 2), CPU, torch.float32)
    known = dataclasses.replace(lesson, **own(network, lesson))
    assert float(lesson_loss(network, known)[0].detach()) < 1e-5
    assert float(lesson_loss(network, lesson)[0].detach()) > 0.1


def own(network: KernelNetwork, lesson: Lesson) -> dict[str, Tensor]:
    """What the network itself says."""
    assert network.gain_network is not None
    joint = network.gain_network.joint_weights(lesson.pairs, lesson.weights)
    shift, left = network.gain_network.moments(lesson.queries)
    known, noise, w = lesson.variance[:, None], lesson.noise[:, None, :, None], lesson.weights
    mean, given = lesson.mean[:, None] + shift * known.sqrt(), joint / joint.sum(-1, keepdim=True)
    H = overlap_entropies(w, w[:, None, None].expand_as(joint), lesson.mean[:, None], known + noise)
    gain = H - overlap_entropies(w, given, mean, left * known + noise)
    found = {"joint": joint, "told_mean": mean, "told_variance": left * known, "gain": gain}
    return {name: t.detach() for name, t in found.items()}


def test_lessons_are_kept_and_made_again(network: KernelNetwork, tmp_path: Path) -> None:
    first = stream(network, tmp_path).batch(4)
    assert len(first) == (1 + lessons.REPLAYED) * 2
    again = stream(network, tmp_path)
    again.network = None  # type: ignore[assignment]  # nothing can be made anew
    assert equal(again.batch(4), first)
    damaged = sorted(tmp_path.glob("*.safetensors"))[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert equal(stream(network, tmp_path).batch(4), first)
    assert equal(stream(network, tmp_path / "other").batch(4), first)


def test_two_lessons_of_three_have_noise_that_matters(
    network: KernelNetwork, tmp_path: Path
) -> None:
    every = stream(network, tmp_path)
    for i, prior in enumerate((noisy(PRIOR), noisy(PRIOR), PRIOR)):
        task = TaskStream(prior, 3, TASKS).batch(i)
        assert equal(every.lesson(i), make_lesson(network, task, 3, i))
    sds = noisy(PRIOR).sample(np.arange(200), 2).noise_sd
    assert 0.3 < float(sds.median()) < 0.45


def test_training_goes_on_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kernel.safetensors"
    export_untrained(file, dataclasses.replace(small().config, gains=None), PRIOR)
    base = Base.open(file)
    train(tmp_path / "whole", small(), base=base)
    run = TrainingRun.open(tmp_path / "whole")
    weights, _ = run.weights()
    assert weights["gain_network.query_sd"].std() > 0  # standardised
    assert any("validation" in line for line in run.read_metrics())
    update = Learner.update

    def killed(learner: Learner) -> None:
        if learner.step == 3:
            raise MemoryError
        update(learner)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", killed)
        with pytest.raises(MemoryError):
            train(tmp_path / "killed", small(), base=base)
    train(tmp_path / "killed", small(), base=base)
    again, _ = TrainingRun.open(tmp_path / "killed").weights()
    assert all(torch.equal(again[name], t) for name, t in weights.items())


def test_a_run_goes_on_with_the_base_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kernel.safetensors"
    export_untrained(file, dataclasses.replace(small().config, gains=None), PRIOR)
    train(tmp_path / "run", small(), base=file, hours=0.0)
    shutil.rmtree(tmp_path / "run" / lessons.FOLDER)
    # Nothing is standardised anew, by lessons of a base that may have learned more since then.
    monkeypatch.setattr(loop, "STANDARD", 0)
    assert train(tmp_path / "run", small(), base=file).reason == "finished"


def test_speed_counts_all_datasets_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Meter, "seconds", 2.0)
    file = tmp_path / "kernel.safetensors"
    seen: list[loop.Status] = []
    export_untrained(file, dataclasses.replace(small().config, gains=None), PRIOR)
    chosen = dataclasses.replace(small(), steps=1)
    train(tmp_path / "run", chosen, base=file, report=seen.append)
    datasets = (1 + lessons.REPLAYED) * TASKS.batch_size
    assert seen[0].datasets_per_second == datasets / 2.0


def test_functions_of_a_corpus_are_refused(network: KernelNetwork, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="corpus: the alpha stage of a kernel network"):
        lessons.stream_of(small(), network, tmp_path, 0, object())  # type: ignore[arg-type]


def test_one_observation(network: KernelNetwork) -> None:
    lesson = make_lesson(network, TaskStream(PRIOR, 5, TASKS).batch_of(0, 2, 1), 1)
    assert all(getattr(lesson, name).isfinite().all() for name in NAMES)


def test_loss_in_double_precision(network: KernelNetwork, task: TaskBatch) -> None:
    lesson = make_lesson(network, task, 1, 2)
    single, double = (
        lesson_loss(network, place(lesson, CPU, dtype))[0].detach()
        for dtype in (torch.float32, torch.float64)
    )
    assert float(double) == pytest.approx(float(single), rel=1e-3)


def test_there_is_nothing_to_compile(network: KernelNetwork) -> None:
    with pytest.raises(ConfigError, match="compile: torch cannot"):
        Learner(small(), network, CPU, compiled=True)
