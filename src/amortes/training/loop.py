"""The training loop: steps, validation, saving, and every way to stop.

Batch s of a run is batch s of the stream (recipe.seed), so a run that goes on after a kill repeats
the steps since its last save and ends with the same weights as one never disturbed.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from amortes.corpora.corpus import Corpus
from amortes.errors import DataError, TrainingError
from amortes.files import AnyPath
from amortes.prior.tasks import TaskBatch
from amortes.training.distributed import NUMERICAL, Ranks, joined, torch_settings
from amortes.training.export import load_network
from amortes.training.interrupt import StopRequest
from amortes.training.learner import Learner, Meter
from amortes.training.lessons import Lesson, LessonStream, stream_of
from amortes.training.objectives import Metrics, summarise
from amortes.training.recipes import MAX_SEED, Recipe
from amortes.training.run import Progress, TrainingRun, locked
from amortes.training.stages import Base, initial_network

# Validation tasks are the same for all runs of one prior and task shape, so scores can be compared;
# no run trains on them, since recipes have smaller seeds.
VALIDATION_SEED = MAX_SEED + 1
STANDARD = 16
"""The first lessons, whose features the network standardises by their mean and deviation."""

Reason = Literal["finished", "interrupted", "out of time"]


@dataclass(frozen=True, kw_only=True)
class Status:
    """What a progress display shows, once per step."""

    step: int  # steps done
    steps: int  # of the whole run
    loss: float  # smoothed
    lr: float
    datasets_per_second: float
    seconds_left: float
    validation: dict[str, float] | None  # if there was one after this step


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """How a call of `train` ended."""

    reason: Reason
    step: int
    best_score: float | None


def train(
    folder: AnyPath,
    recipe: Recipe,
    *,
    base: AnyPath | Base | None = None,
    start: AnyPath | None = None,
    corpus: Corpus | None = None,
    hours: float | None = None,
    workers: int = 0,
    threads: int | None = None,
    device: str = "cpu",
    compiled: bool = False,
    report: Callable[[Status], None] = lambda status: None,
) -> TrainingOutcome:
    """Train a recipe in a run folder, or go on with it; returns when done or asked to stop.

    The alpha stage starts from `base`, a run folder or a file. Either stage may begin with the
    weights in the file `start`. Ctrl-C and SIGTERM end the call after the current step, as do so
    many hours; the state is saved in every case.

    The rest says how to compute and, apart from rounding, changes nothing of what is learnt:
    `workers` are processes that make batches ahead, `threads` those of torch (None: as many as it
    likes), and `compiled` stands for torch.compile.
    """
    with (
        joined(device) as ranks,
        torch_settings(threads),
        StopRequest() as stop,
        contextlib.ExitStack() as stack,
    ):
        ranks.rows(recipe.tasks.batch_size)  # fails at once if there are too few
        base = None if base is None else Base.open(base)
        network = initial_network(recipe, base, start)
        learner = Learner(recipe, network, ranks.device, compiled=compiled)
        stream = stream_of(recipe, learner.average, folder, recipe.seed, corpus)
        if ranks.first:
            stack.enter_context(locked(folder))
            TrainingRun.start(
                folder,
                recipe,
                corpus=corpus.config.digest if corpus is not None else None,
                base=None if base is None else base.about,
                start=load_network(start)[1].stages[recipe.stage] if start is not None else None,
            )
        ranks.wait()
        run = TrainingRun.open(folder)
        progress = run.restore(learner) if run.newest.exists() else Progress()
        # Not before the weights of the base are those that the run began with.
        if isinstance(stream, LessonStream) and start is None and not run.newest.exists():
            learner.standardise(
                Lesson.cat([stream.lesson(i) for i in range(min(STANDARD, recipe.lessons))])
            )
        ranks.wait()
        loop = _Loop(run, learner, progress, ranks, stop, report)
        if hours is not None:
            loop.deadline = loop.began + 3600.0 * hours
        return loop.go(stream.batches(range(learner.step, recipe.steps), workers))


class _Loop:
    """One call of `train`: the steps from the learner's own to the last."""

    def __init__(
        self,
        run: TrainingRun,
        learner: Learner,
        progress: Progress,
        ranks: Ranks,
        stop: StopRequest,
        report: Callable[[Status], None],
    ) -> None:
        self.run, self.learner, self.progress = run, learner, progress
        self.ranks, self.stop, self.report = ranks, stop, report
        self.recipe, self.meter, self.lr = learner.recipe, Meter(), 0.0
        self.datasets = 0  # of a step
        self.began, self.seconds_before = time.monotonic(), progress.seconds
        self.deadline = math.inf

    def go(self, batches: Iterator[TaskBatch | Lesson]) -> TrainingOutcome:
        if self.ranks.first:
            self.run.forget_after(self.learner.step)
        if self._missed_validation():
            self._validate()
        self._save()  # before the first step, so that a full disk shows at once
        reason: Reason | None = None
        while reason is None:
            reason = self._advance(batches)
        self._log()
        self._save()
        return TrainingOutcome(
            reason=reason, step=self.learner.step, best_score=self.progress.best_score
        )

    def _advance(self, batches: Iterator[TaskBatch | Lesson]) -> Reason | None:
        """One step with all that is due after it, or the reason why there is none."""
        if self.learner.step == self.recipe.steps:
            return "finished"
        late = time.monotonic() >= self.deadline
        interrupted, out_of_time = self.ranks.sum([self.stop.requested, late])
        if interrupted or out_of_time:
            return "interrupted" if interrupted else "out of time"
        started, self.lr = time.monotonic(), self.learner.learning_rate
        try:
            task = next(batches)
        except RuntimeError:
            # A signal that came before the workers knew to ignore it; several ranks must agree.
            if self.stop.requested and self.ranks.world == 1:
                return "interrupted"
            raise
        self.datasets = len(task)
        metrics = self._step(task)
        self.meter.add(metrics, time.monotonic() - started)
        if self._due(self.recipe.log_every):
            self._log()
        validation = self._validate() if self._due(self.recipe.validate_every) else None
        if self._due(self.recipe.save_every):
            self._save()
        if self.ranks.first:
            step, steps = self.learner.step, self.recipe.steps
            left = min((steps - step) * self.meter.seconds, self.deadline - time.monotonic())
            status = Status(
                step=step,
                steps=steps,
                loss=self.meter.loss,
                lr=self.lr,
                datasets_per_second=self._speed,
                seconds_left=max(0.0, left),
                validation=validation,
            )
            self.report(status)
        return None

    def _step(self, task: TaskBatch | Lesson) -> dict[str, float]:
        """Learn from one batch, this rank's share of it; returns the metrics of the whole."""
        learner = self.learner
        share, weight = self.ranks.share(task)
        where = f"at step {learner.step}, batch {learner.step} ({task})"
        with self._kept_if_it_fails(
            f"{where} of seed {self.recipe.seed}",
            "The same recipe would stop here again: start another run with a smaller lr or clip.",
        ):
            with self.ranks.together():
                loss, metrics = learner.forward(share)
                (weight * loss).backward()  # type: ignore[no-untyped-call]
            self.ranks.sum_gradients(learner.parameters)
            means = self._combine(metrics, weight) | {"gradient_norm": float(learner.clip())}
            _require_finite(means)
        learner.update()
        return means

    def _validate(self) -> dict[str, float]:
        """Score the averaged weights on the validation tasks; keep them if they are the best."""
        totals: dict[str, float] = {}
        for i, task in enumerate(self._validation_tasks):
            share, weight = self.ranks.share(task)
            where = f"in the validation after step {self.learner.step}, batch {i} ({task})"
            with self._kept_if_it_fails(
                f"{where} of seed {VALIDATION_SEED}",
                "The same command validates again before it goes on; if the weights are to blame, "
                "start another run with a smaller lr.",
            ):
                with self.ranks.together():
                    metrics = self.learner.validate(share)
                means = self._combine(metrics, weight)
                _require_finite(means)
            for name, value in means.items():
                totals[name] = totals.get(name, 0.0) + value / len(self._validation_tasks)
        score = totals["loss"]
        best = self.progress.best_score
        if best is None or score < best:
            self.progress.best_score = score
            if self.ranks.first:
                self.run.save_best(self.learner, score)
        summary = summarise(totals)
        if self.ranks.first:
            self.run.log({"step": self.learner.step, "validation": summary})
        return summary

    @cached_property
    def _validation_tasks(self) -> Sequence[TaskBatch | Lesson]:
        recipe, network = self.recipe, self.learner.average
        stream = stream_of(recipe, network, self.run.folder, VALIDATION_SEED)
        every = range(self.recipe.validation_batches)
        if isinstance(stream, LessonStream):
            return [stream.lesson(i) for i in every]
        return [stream.batch(i) for i in every]

    def _combine(self, metrics: Metrics, weight: float) -> dict[str, float]:
        """Metrics of the whole batch from those of the ranks' shares."""
        sums = self.ranks.sum([weight * float(value) for value in metrics.values()])
        return dict(zip(metrics, sums, strict=True))

    def _missed_validation(self) -> bool:
        """Whether the last step was to be validated, but that failed."""
        step, lines = self.learner.step, self.run.read_metrics()
        done = any(line["step"] == step and "validation" in line for line in lines)
        return step > 0 and self._due(self.recipe.validate_every) and not done

    @contextlib.contextmanager
    def _kept_if_it_fails(self, where: str, advice: str) -> Iterator[None]:
        """Save the state, which the block must not change, if a number in it is not finite."""
        try:
            yield
        except NUMERICAL as error:
            self._log()
            self._save()
            self.ranks.wait()  # until it is saved: torchrun ends all when the first is gone
            raise TrainingError(
                f"{error} This happened {where}. The last good state is kept in "
                f"{self.run.newest}. {advice}"
            ) from error

    def _due(self, every: int) -> bool:
        return self.learner.step % every == 0 or self.learner.step == self.recipe.steps

    def _log(self) -> None:
        means = self.meter.flush()
        if means and self.ranks.first:
            speed = {
                "datasets_per_second": round(self._speed, 2),
                "seconds": round(self._elapsed, 1),
            }
            self.run.log({"step": self.learner.step, "lr": self.lr} | summarise(means) | speed)

    def _save(self) -> None:
        self.progress.step, self.progress.seconds = self.learner.step, self._elapsed
        if self.ranks.first:
            self.run.save(self.learner, self.progress)

    @property
    def _elapsed(self) -> float:
        return self.seconds_before + time.monotonic() - self.began

    @property
    def _speed(self) -> float:
        return self.datasets / self.meter.seconds


def _require_finite(metrics: dict[str, float]) -> None:
    wrong = [f"{name} is {value}" for name, value in metrics.items() if not math.isfinite(value)]
    if wrong:
        raise DataError(f"Not finite: {', '.join(wrong)}.")
