"""`amortes optimize`: tune the arguments of any program."""

import contextlib
import dataclasses
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.live import Live

from amortes.cli.console import (
    ERR,
    EXIT_FAILED_CHECK,
    FOLDER,
    NATURAL,
    OUT,
    PATH,
    POSITIVE,
    json_option,
    option,
)
from amortes.cli.weights import Weights
from amortes.command import view
from amortes.command.folder import RunFolder
from amortes.command.outcome import STDERR, Sources, last_line
from amortes.command.run import CommandRun, Plan
from amortes.command.spacefile import read_space
from amortes.command.template import Template, variable
from amortes.optimiser.insight import Goal
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.suggest import ACQUISITIONS
from amortes.optimiser.table import read_results
from amortes.optimiser.text import counted, interval, number
from amortes.training.interrupt import StopRequest

REFRESH = 0.25  # seconds between pictures of what is running


@click.command()
@option("--space", "space_file", type=PATH, required=True,
        help="TOML file that describes the parameters; see the example above.")  # fmt: skip
@option("--trials", type=POSITIVE, default=50,
        help="Number of evaluations in total, including those of earlier calls but not "
             "those of --start.")  # fmt: skip
@option("--jobs", type=POSITIVE, default=1, help="Evaluations to run at the same time.")
@option("--goal", type=click.Choice(["minimize", "maximize"]), default="minimize",
        help="Whether a small or a large result is better.")  # fmt: skip
@option("--result", "result_key", metavar="FILE:KEY",
        help="Read the result from a JSON file that COMMAND writes to "
             "$AMORTES_TRIAL_FOLDER, such as result.json:loss or "
             "result.json:test.loss.  [default: the last line that it prints]")  # fmt: skip
@option("--cost", metavar="FILE:KEY|seconds",
        help="Look for the largest gain per cost. The cost of an evaluation is a "
             "number in a JSON file, or the seconds it takes.")  # fmt: skip
@option("--violation", metavar="FILE:KEY",
        help="A number in a JSON file that says by how much an evaluation violates a "
             "constraint; zero or less means that it is satisfied.")  # fmt: skip
@option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
        help="Stop evaluations that take longer than this; they count as failed.")  # fmt: skip
@option("--start", "start_file", type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Start from past results: a CSV file with a column for each parameter and "
             "one named value, such as the trials.csv of another run.")  # fmt: skip
@option("--retry-failed", is_flag=True,
        help="Evaluate the trials that failed in earlier calls again. Use it once you "
             "have fixed the cause.")  # fmt: skip
@option("--acquisition", type=click.Choice(ACQUISITIONS), default="auto",
        help="Acquisition function, which chooses what to evaluate next; auto suits "
             "most runs.")  # fmt: skip
@option("--seed", type=NATURAL, default=0, help="Seed of everything random.")
@option("--run", "folder", type=FOLDER, default=Path("amortes-run"),
        help="Folder of the run: its state, the outputs of trials, plot.png and "
             "trials.csv.")  # fmt: skip
@option("--network", "weights", type=Weights(),
        help="Use another network: a name from `amortes info`, or a file from "
             "`amortes export`.")  # fmt: skip
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def optimize(
    space_file: Path,
    trials: int,
    jobs: int,
    goal: Goal,
    result_key: str | None,
    cost: str | None,
    violation: str | None,
    timeout: float | None,
    start_file: Path | None,
    retry_failed: bool,
    acquisition: str,
    seed: int,
    folder: Path,
    weights: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND with different arguments to find those that give the best result.

    COMMAND prints its result as the last line, such as "0.31" or "loss: 0.31". Each {name} in its
    arguments is replaced by the value of that parameter. COMMAND can also read the values from
    environment variables ($AMORTES_LR for lr) or from config.json in $AMORTES_TRIAL_FOLDER.

    \b
    Example. Describe the parameters in space.toml:
      epochs = 20                  # a constant
      [lr]
      type = "float"
      low = 1e-5
      high = 1e-1
      log = true
      [layers]
      type = "int"
      low = 1
      high = 8
      [act]
      type = "categorical"         # or "ordinal" if the choices have an order
      choices = ["relu", "gelu"]
      [[constraints]]              # optional: layers + 100 lr <= 9
      coefficients = { layers = 1, lr = 100 }
      upper = 9

    \b
    Then run one of:
      amortes optimize --space space.toml -- ./train.sh {lr} {layers} {act}
      amortes optimize --space space.toml --jobs 4 --timeout 600 --goal maximize \\
          --result result.json:accuracy -- python train.py --config {trial_folder}/config.json
      amortes optimize --space space.toml --result r.json:loss --cost seconds \\
          --violation r.json:gigabytes_too_many -- ./train.sh {lr} {layers} {act}

    Ctrl-C stops cleanly. The same command continues the run, even after a crash; trials that were
    running are evaluated again. A larger --trials extends a finished run.

    A trial fails if COMMAND exits with an error, prints no number or takes too long; the model
    learns to avoid such configs. Processes that COMMAND leaves in the background are stopped. The
    exit code is 1 if no evaluation gave a number.
    """
    space = read_space(space_file)
    plan = Plan(
        template=Template(command, space),
        trials=trials,
        jobs=jobs,
        timeout=timeout,
        sources=Sources.parse(result_key, cost, violation),
    )
    files = RunFolder(folder)
    with files.locked(), _warnings_on_console():
        optimizer = files.open(
            space,
            goal,
            acquisition=acquisition,
            seed=seed,
            network=weights,
            start=[] if start_file is None else read_results(start_file, space),
            about={
                "command": list(command),
                "result": result_key,
                "cost": cost,
                "violation": violation,
            },
        )
        if unused := plan.template.unused:
            names = ", ".join(f"{{{name}}}" for name in unused)
            ERR.print(
                f"[yellow]Note:[/] the command does not use {names}. It can read "
                f"${variable(unused[0])} instead, or config.json in its trial folder."
            )
        run = CommandRun(optimizer, files, plan, retry_failed=retry_failed)
        with StopRequest() as stop:
            _evaluate(run, stop)
            stopped = len(run.running)
        _conclude(run, optimizer, as_json=as_json)
        if run.trials:
            files.write_report(optimizer)
            if not as_json:
                _say(f"Wrote {files.plot} and {files.csv}")
    if stop.requested:
        if stopped:
            ERR.print(
                f"Stopped with {counted(stopped, 'trial')} running, which the same command "
                f"evaluates again."
            )
        else:
            ERR.print("Stopped. The same command goes on.")
        raise KeyboardInterrupt
    if not any(trial.status == "done" for trial in run.own):
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)


def _evaluate(run: CommandRun, stop: StopRequest) -> None:
    """Go through the trials, showing them."""
    if waiting := sum(trial.status == "pending" for trial in run.own):
        ERR.print(f"Continuing with {counted(waiting, 'trial')} that had not finished.")
    elif run.complete:
        ERR.print(
            f"The run is complete: {counted(run.count, 'trial')}. A larger --trials extends it."
        )
    elif run.count:
        ERR.print(f"Continuing after {counted(run.count, 'trial')}.")
    elif past := run.optimizer.past:
        ERR.print(f"Starting from {counted(past, 'past result')}.")

    def picture() -> Any:
        seconds = {number: process.seconds for number, process in run.running.items()}
        goal, total = run.optimizer.goal, run.plan.trials
        past = run.optimizer.past
        return view.show(run.trials, seconds, past=past, total=total, goal=goal)

    if not ERR.is_terminal:
        for ended in run.evaluate(interrupted=lambda: stop.requested):
            for trial in ended:
                ERR.print(view.describe(trial), markup=False, highlight=False, soft_wrap=True)
        return
    with Live(picture(), console=ERR, auto_refresh=False) as live:
        drawn = 0.0
        for ended in run.evaluate(interrupted=lambda: stop.requested):
            if ended or time.monotonic() - drawn > REFRESH:
                live.update(picture(), refresh=True)
                drawn = time.monotonic()


def _conclude(run: CommandRun, optimizer: Optimizer, *, as_json: bool) -> None:
    """Say what was found, and where it is."""
    done = [trial for trial in run.own if trial.status == "done"]
    best = optimizer.best if done else None
    recommended = optimizer.recommend() if done else None
    if as_json:
        found = {
            "trials": run.count,
            "failed": sum(trial.status == "failed" for trial in run.own),
            "best": None if best is None else best.to_dict(),
            "recommended": None if recommended is None else dataclasses.asdict(recommended),
            "folder": str(run.folder.path),
        }
        click.echo(json.dumps(found, indent=2))
        return
    if best is None or recommended is None:
        failed = [trial for trial in run.own if trial.status == "failed"]
        if failed:
            last = failed[-1]
            ERR.print(
                f"[red]No number from {counted(len(failed), 'trial')}.[/] The last one failed with:"
            )
            ERR.print(last.reason or "", markup=False, soft_wrap=True)
            if line := last_line(run.folder.trial(last.number) / STDERR):
                ERR.print(line, markup=False, soft_wrap=True)
            ERR.print(f"Its output is in {run.folder.trial(last.number)}.", soft_wrap=True)
            ERR.print("When you have fixed the cause, add --retry-failed to the same command.")
        return
    _say(f"best result       {number(best.value)}   {_arguments(best.config)}")
    ends = interval(recommended.lower, recommended.upper, "and")
    _say(f"recommended       {number(recommended.median)}   {_arguments(recommended.config)}")
    _say(f"                  expected result, with {recommended.level:.0%} between {ends}")


def _arguments(config: dict[str, Any]) -> str:
    return " ".join(f"{name}={number(value)}" for name, value in config.items())


def _say(line: str) -> None:
    OUT.print(line, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _warnings_on_console() -> Iterator[None]:
    """Warnings as sentences, without the place in the source."""

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        ERR.print("[yellow]Note:[/]", end=" ")
        ERR.print(str(message), markup=False, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
