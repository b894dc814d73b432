"""The loop of `amortes optimize`: ask, start a process, read its answer, tell, save.

One thread: processes are looked at every few hundredths of a second, and their outputs go to files,
so nothing blocks. A process that takes too long is asked to stop, and killed at a later look if it
does not; what a command leaves in the background is killed when it ends. The state is saved after
every ask and every tell; a trial that was under way when a run ended is still pending in it, and is
evaluated again from its beginning.
"""

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from amortes.command.folder import RunFolder
from amortes.command.guard import GRACE
from amortes.command.outcome import Answer, Sources
from amortes.command.process import Guard, Process, fresh_folder, stop
from amortes.command.template import Template
from amortes.files import write_json
from amortes.optimiser import Optimizer, Trial
from amortes.optimiser.minimize import HOPELESS

POLL = 0.03  # seconds between looks at the processes


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to evaluate, and how often."""

    template: Template
    trials: int
    jobs: int = 1
    timeout: float | None = None
    sources: Sources = Sources()


class CommandRun:
    """The evaluations of one call of `amortes optimize`."""

    def __init__(
        self, optimizer: Optimizer, folder: RunFolder, plan: Plan, *, retry_failed: bool = False
    ) -> None:
        self.optimizer, self.folder, self.plan = optimizer, folder, plan
        for trial in optimizer.trials[optimizer.past :] if retry_failed else ():
            if _failed(trial):
                optimizer.withdraw(trial)
                optimizer.enqueue(trial.config)
        self.trials = optimizer.trials
        self.running: dict[int, Process] = {}  # by the number of the trial
        self._again = [trial for trial in self.trials if trial.status == "pending"]
        self._late: dict[int, float] = {}  # when to kill trials that were asked to stop
        self._failed = 0
        self._succeeded = any(trial.status == "done" for trial in self.own)

    @property
    def own(self) -> list[Trial]:
        """Its trials without the past results it began with."""
        return self.trials[self.optimizer.past :]

    @property
    def count(self) -> int:
        """Trials that count: all of its own but those withdrawn."""
        return sum(trial.status != "withdrawn" for trial in self.own)

    @property
    def complete(self) -> bool:
        """Whether no new trial is to begin."""
        return self.count >= self.plan.trials

    @property
    def hopeless(self) -> bool:
        """Whether too much has failed, and nothing worked."""
        return self._failed >= HOPELESS and not self._succeeded

    def evaluate(self, *, interrupted: Callable[[], bool]) -> Iterator[list[Trial]]:
        """Run until all is done or `interrupted`; yields, at every look, the trials that ended."""
        with Guard() as guard:
            try:
                while True:
                    yield self._collect(guard)
                    if interrupted():
                        return
                    while len(self.running) < self.plan.jobs and (trial := self._next()):
                        if not_started := self._start(trial, guard):
                            yield [not_started]
                        if interrupted():
                            return
                    if not self.running:
                        return
                    time.sleep(POLL)
            finally:
                stop(self.running.values())

    def _next(self) -> Trial | None:
        """The next trial to start: first those an earlier call left, then new ones."""
        if self._again:
            return self._again.pop(0)
        if self.complete or self.hopeless:
            return None
        trial = self.optimizer.ask()
        self._save()
        return trial

    def _start(self, trial: Trial, guard: Guard) -> Trial | None:
        """Start a trial; returns it if that failed."""
        folder = fresh_folder(self.folder.trial(trial.number))
        write_json(folder / "config.json", trial.config)
        words = self.plan.template.fill(trial.config, trial.number, folder)
        variables = self.plan.template.environment(trial.config, trial.number, folder)
        try:
            process = Process(words, folder, variables)
        except OSError as error:
            return self._tell(trial.number, Answer(reason=f"could not start {words[0]}: {error}"))
        guard.begin(process)
        self.running[trial.number] = process
        return None

    def _collect(self, guard: Guard) -> list[Trial]:
        """Tell what has ended since the last look."""
        ended = []
        for number, process in list(self.running.items()):
            code = process.poll()
            if code is None:
                self._end_if_late(number, process)
                continue
            process.send(signal.SIGKILL)  # to what it left in the background
            if number in self._late:
                answer = Answer(reason=f"took longer than {self.plan.timeout:g} seconds")
            else:
                answer = self.plan.sources.read(process.folder, code, process.seconds)
            guard.end(process)
            del self.running[number]
            ended.append(self._tell(number, answer))
        return ended

    def _end_if_late(self, number: int, process: Process) -> None:
        """Ask a process to stop if its time is over; kill it if it was asked and does not."""
        if number in self._late:
            if time.monotonic() > self._late[number]:
                process.send(signal.SIGKILL)
        elif self.plan.timeout is not None and process.seconds > self.plan.timeout:
            process.send(signal.SIGTERM)
            self._late[number] = time.monotonic() + GRACE

    def _tell(self, number: int, answer: Answer) -> Trial:
        told = vars(answer) | {"failed": answer.value is None}
        trial = self.optimizer.tell(self.trials[number], **told)
        self._succeeded |= trial.status == "done"
        self._failed += _failed(trial)
        self._save()
        return trial

    def _save(self) -> None:
        self.optimizer.save(self.folder.state)
        self.trials = self.optimizer.trials


def _failed(trial: Trial) -> bool:
    """Whether a trial failed otherwise than by a violation, from which one learns."""
    return trial.status == "failed" and not (trial.violation or 0.0) > 0
