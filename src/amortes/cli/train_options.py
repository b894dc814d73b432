"""What commands that train share: options, and progress for people and for log files."""

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from amortes.cli.console import ERR, Command, progress, set_option
from amortes.cli.parsing import POSITIVE
from amortes.cli.weights import Weights
from amortes.corpora.corpus import Corpus
from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS, named_prior
from amortes.training import loop
from amortes.training.architectures import learns_gains
from amortes.training.recipes import RECIPES, Recipe, Stage


def _options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


recipe_option = click.option(
    "--recipe",
    "recipe_name",
    type=click.Choice(list(RECIPES)),
    default="kernel",
    show_default=True,
    help="Network, task sizes, optimiser; see `amortes train --help`.",
)
prior_option = click.option(
    "--prior",
    type=click.Choice(list(PRIORS)),
    default="real",
    show_default=True,
    help="Where functions come from.",
)
recipe_set_option = set_option("the recipe, for instance lr=3e-3 or tasks.batch_size=64")
threads_option = click.option(
    "--threads", type=POSITIVE, help="Threads of torch.  [default: all cores]"
)
device_option = click.option(
    "--device", default="cpu", show_default=True, help="cpu or cuda (bfloat16 where it is safe)."
)
compile_option = click.option(
    "--compile",
    "compiled",
    is_flag=True,
    help="Use torch.compile; minutes to start, as every dimension is compiled. See `train bench`.",
)
run_options = _options(
    click.option("--run", "folder", type=click.Path(path_type=Path), required=True, help="Folder."),
    click.option("--steps", type=POSITIVE, help="Length of the run, the same as --set steps=N."),
    click.option(
        "--hours",
        type=click.FloatRange(min=0),
        help="Stop after so long; the same command goes on.",
    ),
    recipe_set_option,
    click.option(
        "--start",
        type=Weights(),
        help="A trained network, by name or file, whose weights to go on with, perhaps on another "
        "prior.",
    ),
    click.option(
        "--corpus",
        "corpus_folder",
        type=click.Path(path_type=Path),
        help="Paths from `amortes prior generate`.  [default: drawn and maximised on the fly]",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Processes that make batches ahead.",
    ),
    threads_option,
    device_option,
    compile_option,
)


def with_steps(overrides: tuple[str, ...], steps: int | None) -> list[str]:
    """The settings of --set and --steps."""
    return [*overrides, *([f"steps={steps}"] if steps is not None else [])]


def require_kind(name: str, stage: Stage, network: str, place: Path) -> None:
    """Refuse a recipe for another kind of network than `network`, which is in `place`."""
    if RECIPES[name](stage, named_prior("paper")).network != network:
        raise ConfigError(
            f"recipe: {name} trains another kind of network than {network}, the one in {place}."
        )


def train(
    folder: Path,
    chosen: Recipe,
    corpus_folder: Path | None,
    options: dict[str, Any],
    **sources: Path | None,
) -> None:
    """Train with a progress bar; afterwards say how it ended and what can be done next.

    `sources` are where `loop.train` takes weights from.
    """
    with progress("steps") as bar:
        outcome = loop.train(
            folder,
            chosen,
            **sources,
            corpus=Corpus.open(corpus_folder) if corpus_folder is not None else None,
            options=loop.Options(**options),
            report=_Display(bar, chosen.stage, timed=options["hours"] is not None),
        )
    if outcome.reason == "interrupted":
        raise KeyboardInterrupt
    if int(os.environ.get("RANK", "0")) > 0:  # one of several processes does the talking
        return
    score = "" if outcome.best_score is None else f", best validation {outcome.best_score:.4f}"
    ERR.print(f"Step {outcome.step} of {chosen.steps}{score}, in {folder}.", soft_wrap=True)
    if outcome.reason == "out of time":
        ERR.print("Out of time. Start the same command again to go on.")
    elif chosen.stage == "base" and learns_gains(chosen.network):
        ERR.print(f"Next: amortes train alpha --base {folder} --run {folder}-alpha", soft_wrap=True)
    else:
        ERR.print(f"Next: amortes export {folder} -o weights.safetensors", soft_wrap=True)


class _Display:
    """Draws the status of a run: a bar on a terminal, and a line per validation anywhere."""

    def __init__(self, bar: Progress, stage: str, *, timed: bool) -> None:
        self.bar, self.stage, self.timed = bar, stage, timed
        self.task: Any = None

    def __call__(self, status: loop.Status) -> None:
        speed = f"{status.datasets_per_second:.0f} datasets/s"
        left = str(datetime.timedelta(seconds=round(status.seconds_left)))
        note = f"loss {status.loss:.4f}, lr {status.lr:.1e}, {speed}"
        note += f", stops in {left}" if self.timed else ""
        if self.task is None:
            self.task = self.bar.add_task(self.stage, total=status.steps, note="")
        self.bar.update(self.task, completed=status.step, note=note)
        if status.validation is not None:
            scores = ", ".join(f"{name} {value:.4f}" for name, value in status.validation.items())
            ERR.print(
                f"step {status.step} of {status.steps}: loss {status.loss:.4f}, {speed}, "
                f"{left} left; validation: {scores}",
                soft_wrap=True,
                highlight=False,
            )
