"""Trains a recipe in a process of its own: `python -m tests.training.child FOLDER [KILL_AT]`.

With KILL_AT the process kills itself, as a machine might, right after that step.
"""

import dataclasses
import os
import signal
import sys

from amortes.training.loop import Options, Status, train
from tests.training.fake import fake_recipe

# Five rows do not divide evenly among two processes.
RECIPE = fake_recipe(tasks=dataclasses.replace(fake_recipe().tasks, batch_size=5))


def main(folder: str, kill_at: int = 0) -> None:
    def report(status: Status) -> None:
        if status.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    train(folder, RECIPE, options=Options(threads=1), report=report)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
