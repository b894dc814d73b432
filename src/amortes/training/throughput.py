"""How fast a training step is, where its time goes, and how much of the machine it uses.

The share of the peak is (floating-point operations of the matrix products in a step) / (time of the
step without data) / (operations per second of one large float32 product on the same threads).
Products are counted by torch; factorisations and elementwise work are not, so the rest of the time
is what a network spends on everything but products.

Many steps learn from one lesson, and first steps all from the same. So lessons are timed by
themselves, and each step counts for its part of one.
"""

import tempfile
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from amortes.prior.tasks import TaskBatch, TaskStream
from amortes.training.distributed import find_device
from amortes.training.learner import Learner
from amortes.training.lessons import Lesson, LessonStream, stream_of
from amortes.training.recipes import Recipe, build_network

PHASES = ("data", "forward", "backward", "optimiser")
PEAK_SIZE = 2048  # rows of the square matrices that measure the peak
PEAK_REPEATS = 5
LESSONS = 4  # that are timed


def bench(
    recipe: Recipe, *, steps: int = 10, device: str = "cpu", compiled: bool = False
) -> dict[str, float]:
    """Time the first `steps` steps of a recipe, after some that are not counted.

    Shares are parts of the time of a step: making the batch (data), the loss, with the targets of
    the alpha stage (forward), its gradient (backward), and clipping, update and moving average
    (optimiser).
    """
    place = find_device(device)
    learner = _learner(recipe, place, compiled=compiled)
    with tempfile.TemporaryDirectory() as folder:
        return _measured(
            learner,
            stream_of(recipe, learner.average, folder, recipe.seed),
            steps,
            compiled=compiled,
        )


def _measured(
    learner: Learner, stream: TaskStream | LessonStream, steps: int, *, compiled: bool
) -> dict[str, float]:
    recipe, place = learner.recipe, learner.device
    for step in range(steps if compiled else 1):  # every new shape may have to be compiled
        _timed_step(learner, stream, step)
    total = dict.fromkeys(PHASES, 0.0)
    tasks = []
    for step in range(steps):
        task, seconds = _timed_step(learner, stream, step)
        tasks.append(task)
        for phase in PHASES:
            total[phase] += seconds[phase]
    if isinstance(stream, LessonStream):
        total["data"] += steps * _seconds_of_a_lesson(stream) * stream.lessons / stream.steps
    counter = _learner(recipe, place, compiled=False)
    gigaflops = sum(_count(counter, step, task) for step, task in enumerate(tasks)) / steps / 1e9
    everything = sum(total.values())
    peak = matmul_peak(place) / 1e9
    return dict(
        datasets_per_second=sum(len(task) for task in tasks) / everything,
        milliseconds_per_step=1e3 * everything / steps,
        **{f"{phase}_share": total[phase] / everything for phase in PHASES},
        gigaflops_per_step=gigaflops,
        peak_gigaflops_per_second=peak,
        peak_share=gigaflops * steps / (everything - total["data"]) / peak,
    )


def matmul_peak(device: torch.device) -> float:
    """Operations per second of a large float32 matrix product, the best of a few."""
    A = torch.ones(PEAK_SIZE, PEAK_SIZE, device=device, dtype=torch.float32)
    seconds = []
    for _ in range(PEAK_REPEATS):
        started = _now(device)
        A @ A
        seconds.append(_now(device) - started)
    return float(2 * PEAK_SIZE**3 / min(seconds))


def _learner(recipe: Recipe, device: torch.device, *, compiled: bool) -> Learner:
    """A learner with initial weights: speed does not depend on what the base has learnt."""
    network = build_network(recipe.network, recipe.config, recipe.prior, recipe.seed)
    return Learner(recipe, network, device, compiled=compiled)


def _timed_step(
    learner: Learner, stream: TaskStream | LessonStream, step: int
) -> tuple[TaskBatch | Lesson, dict[str, float]]:
    """One step; returns its batch and the seconds of each phase."""
    times = [_now(learner.device)]
    task = stream.batch(step)
    times.append(_now(learner.device))
    loss, _ = learner.forward(task)
    times.append(_now(learner.device))
    loss.backward()  # type: ignore[no-untyped-call]
    times.append(_now(learner.device))
    learner.clip()
    learner.update()
    times.append(_now(learner.device))
    return task, {p: b - a for p, a, b in zip(PHASES, times, times[1:], strict=False)}


def _seconds_of_a_lesson(stream: LessonStream) -> float:
    """Seconds for making a lesson, on average over a few that are not there yet."""
    started = time.perf_counter()
    for i in range(LESSONS):
        stream.lesson(stream.lessons + i)
    return (time.perf_counter() - started) / LESSONS


def _count(learner: Learner, step: int, task: TaskBatch | Lesson) -> int:
    """Floating-point operations of the matrix products in one step."""
    learner.step = step
    with FlopCounterMode(display=False) as counter:
        learner.forward(task)[0].backward()  # type: ignore[no-untyped-call]
    return int(counter.get_total_flops())


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
