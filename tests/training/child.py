"""Trains a recipe in a process of its own: `python -m tests.training.child FOLDER [EVENT STEP]`.

kill         the process kills itself, as a machine might, right after that step
interrupt    Ctrl-C reaches its parent, torchrun, after that step; batches come from a worker
poison       the last row of the batch of that step is not finite
"""

import dataclasses
import math
import os
import signal
import sys

from amortes.prior.tasks import TaskBatch, TaskStream
from amortes.training.loop import Status, train
from tests.training.fake import fake_recipe

# Five rows do not divide evenly among two processes.
RECIPE = fake_recipe(tasks=dataclasses.replace(fake_recipe().tasks, batch_size=5))


def poison(at: int) -> None:
    make = TaskStream.batch

    def batch(self: TaskStream, step: int) -> TaskBatch:
        task = make(self, step)
        if step == at:
            task.y[-1, 0] = math.nan
        return task

    TaskStream.batch = batch  # type: ignore[method-assign]


def main(folder: str, event: str = "", step: str = "-1") -> None:
    at = int(step)

    def report(status: Status) -> None:
        if status.step == at and event == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if status.step == at and event == "interrupt":
            os.kill(os.getppid(), signal.SIGINT)

    if event == "poison":
        poison(at)
    workers = int(event == "interrupt")
    train(folder, RECIPE, threads=1, workers=workers, report=report)


if __name__ == "__main__":
    main(*sys.argv[1:])
