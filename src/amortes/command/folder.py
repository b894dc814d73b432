"""The folder of a run: everything it needs to go on, and everything it found.

    state.json          the optimiser with all trials, replaced after each change
    command.json        the command and where its numbers are, so that nothing else is mixed in
    state.lab.json      names and units, if `amortes lab` made or took over the run
    trials/0007/        config.json, stdout.txt, stderr.txt and what the command writes there
    trials.csv          one line per trial
    plot.png            results, and the model along each parameter

The last two are written at the end of a call, however it ends.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from amortes.errors import ConfigError, FileError, shown
from amortes.files import atomic_path, locked, make_folder, read_json, write_json, write_text
from amortes.optimiser import Optimizer, Space, Trial
from amortes.optimiser.insight import Goal
from amortes.optimiser.table import as_csv
from amortes.pretrained import AnyNetwork


class RunFolder:
    """Names of the files, and how they are read and written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state, self.command = path / "state.json", path / "command.json"
        self.csv, self.plot = path / "trials.csv", path / "plot.png"

    def trial(self, number: int) -> Path:
        """The folder of a trial; absolute, as commands may change theirs."""
        return (self.path / "trials" / f"{number:04d}").absolute()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from working in this folder at the same time."""
        make_folder(self.path)
        with locked(self.path, "`amortes optimize`"):
            yield

    def open(
        self,
        space: Space,
        goal: Goal,
        *,
        acquisition: str,
        seed: int,
        network: AnyNetwork | None,
        start: Sequence[Trial],
        about: Mapping[str, Any],
    ) -> Optimizer:
        """A new optimiser, or the one of the run this folder holds, if it is the same run.

        `start` are past results; `about` says what is evaluated and how, in JSON values by the
        names that users know. A run without a command, as `amortes lab` makes them, gets this one.
        """
        resumed, adopted = self.state.exists(), not self.command.exists()
        if resumed and adopted and not start:
            run = Optimizer.load(self.state, network=network)
            start = run.trials[: run.past]
        optimizer = Optimizer(
            space, goal, acquisition=acquisition, seed=seed, network=network, start=start
        )
        if resumed and not adopted:
            self._check_same(about)
        if resumed:
            optimizer = optimizer.resumed(self.state)
        if adopted or not resumed:
            write_json(self.command, dict(about))
        if not resumed:
            optimizer.save(self.state)
        return optimizer

    def _check_same(self, about: Mapping[str, Any]) -> None:
        before = read_json(self.command)
        if not isinstance(before, dict) or set(before) != set(about):
            raise FileError(
                f"{self.command} is damaged; restore it, or use --run to start a new run in "
                f"another folder."
            )
        for name, now in about.items():
            if before[name] != now:
                raise ConfigError(
                    f"{name}: the run in {self.path} has {_words(before[name])}, not "
                    f"{_words(now)}. Pass the same one to continue, or use --run to start a new "
                    f"run in another folder."
                )

    def write_report(self, optimizer: Optimizer) -> None:
        """Write the table and the figure."""
        write_text(self.csv, as_csv(optimizer.trials))
        with atomic_path(self.plot) as temporary:
            optimizer.plot().savefig(temporary, format="png", dpi=130)


def _words(value: Any) -> str:
    return shown(" ".join(value) if isinstance(value, list) else value)
