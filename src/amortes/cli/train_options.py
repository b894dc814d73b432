"""What commands that train share: options, and progress for people and for log files."""

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import ERR, NATURAL, PATH, POSITIVE, counting, option, options, set_option
from amortes.cli.weights import Weights
from amortes.corpora.corpus import Corpus
from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS, named_prior
from amortes.training import loop
from amortes.training.architectures import learns_gains
from amortes.training.recipes import RECIPES, Recipe, Stage

HOURS = click.FloatRange(min=0)
recipe_option = option(
    "--recipe",
    "recipe_name",
    type=click.Choice(list(RECIPES)),
    default="kernel",
    help="Network, task sizes, optimiser; see `amortes train --help`.",
)
prior_option = option(
    "--prior", type=click.Choice(list(PRIORS)), default="real", help="Where functions come from."
)
recipe_set_option = set_option("the recipe, for instance lr=3e-3 or tasks.batch_size=64")
threads_option = option("--threads", type=POSITIVE, help="Threads of torch.  [default: all cores]")
device_option = option("--device", default="cpu", help="cpu or cuda (bfloat16 where it is safe).")
compile_option = option(
    "--compile",
    "compiled",
    is_flag=True,
    help="Use torch.compile; minutes to start, as every dimension is compiled. See `train bench`.",
)
run_options = options(
    option("--run", "folder", type=PATH, required=True, help="Folder."),
    option("--steps", type=POSITIVE, help="Length of the run, the same as --set steps=N."),
    option("--hours", type=HOURS, help="Stop after so long; the same command goes on."),
    recipe_set_option,
    option(
        "--start",
        type=Weights(),
        help="A trained network, by name or file, whose weights to go on with, perhaps on another "
        "prior.",
    ),
    option(
        "--corpus",
        "corpus_folder",
        type=PATH,
        help="Paths from `amortes prior generate`.  [default: drawn and maximised on the fly]",
    ),
    option("--workers", type=NATURAL, default=0, help="Processes that make batches ahead."),
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
    **sources: Any,
) -> None:
    """Train with a progress bar; afterwards say how it ended and what can be done next.

    `sources` are where `loop.train` takes weights from.
    """
    timed = options["hours"] is not None
    with counting("steps", chosen.stage, chosen.steps) as update:
        outcome = loop.train(
            folder,
            chosen,
            **sources,
            corpus=Corpus.open(corpus_folder) if corpus_folder is not None else None,
            options=loop.Options(**options),
            report=lambda status: _show(status, update, timed=timed),
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


def _show(status: loop.Status, update: Callable[..., None], *, timed: bool) -> None:
    """The status of a run: a bar on a terminal, and a line per validation anywhere."""
    speed = f"{status.datasets_per_second:.0f} datasets/s"
    left = str(datetime.timedelta(seconds=round(status.seconds_left)))
    note = f"loss {status.loss:.4f}, lr {status.lr:.1e}, {speed}{f', stops in {left}' * timed}"
    update(completed=status.step, note=note)
    if status.validation is not None:
        scores = ", ".join(f"{name} {value:.4f}" for name, value in status.validation.items())
        ERR.print(
            f"step {status.step} of {status.steps}: loss {status.loss:.4f}, {speed}, "
            f"{left} left; validation: {scores}",
            soft_wrap=True,
            highlight=False,
        )
