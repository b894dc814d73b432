"""`amortes train`: the two stages of training, and how fast they are."""

import dataclasses
import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from amortes.cli.console import (
    ERR,
    Command,
    figure_option,
    json_option,
    progress,
    set_option,
    show_rows,
    write_figure,
)
from amortes.cli.weights import Weights
from amortes.errors import ConfigError
from amortes.prior.corpus import Corpus
from amortes.prior.gp import PRIORS, named_prior
from amortes.training import loop
from amortes.training.bench import bench as measure
from amortes.training.export import load_network
from amortes.training.recipes import RECIPES, STAGES, Recipe, recipe
from amortes.training.run import Run
from amortes.training.stages import Base

POSITIVE = click.IntRange(min=1)


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
    default="robust",
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


@click.group()
def train() -> None:
    """Train networks: first the base, which predicts, then alpha, which knows gains.

    \b
    Examples:
      amortes train base --recipe kernel --prior paper --run runs/k1
      amortes train alpha --recipe kernel --base runs/k1 --run runs/k1-alpha
      amortes export runs/k1-alpha -o kernel-paper.safetensors

    A run can be stopped at any time (Ctrl-C, SIGTERM, --hours); the same command goes on with it,
    exactly as if it had never stopped. Its folder holds metrics.jsonl with everything measured.

    \b
    Recipes:
      kernel         exact Gaussian-process inference, learned corrections; minutes on one core
      transformer    the paper's architecture, sized for a CPU
      paper          the paper's network and budget, 100 million datasets; wants a GPU

    \b
    Several processes, which share every batch and take the same steps as one would:
      torchrun --nproc-per-node 2 --no-python -- amortes train base --threads 1 --run runs/k2
    """


@train.command()
@recipe_option
@prior_option
@run_options
def base(
    recipe_name: str,
    prior: str,
    folder: Path,
    steps: int | None,
    overrides: tuple[str, ...],
    start: Path | None,
    corpus_folder: Path | None,
    **options: Any,
) -> None:
    """Train the base network: predictions, given nothing, x*, f* or both.

    \b
    Examples:
      amortes train base --run runs/k1                         kernel network, robust prior
      amortes train base --prior paper --run runs/k2 --hours 0.5
      amortes train base --recipe transformer --run runs/t1 --workers 1
      amortes train base --run runs/k3 --set lr=1e-3 --set tasks.batch_size=64
      amortes train base --recipe transformer --run runs/t2 --start transformer-paper

    The loss is the excess cross-entropy, in nats, over someone who knows the hyperparameters.
    """
    config = {}
    if start is not None:
        network, card = load_network(start)
        _require_kind(recipe_name, card.network, start)
        config = {"config": network.config}
    settings = _with_steps(overrides, steps)
    chosen = recipe(recipe_name, "base", named_prior(prior), settings, **config)
    _train(folder, chosen, corpus_folder, options, start=start)


@train.command()
@click.option(
    "--recipe",
    "recipe_name",
    type=click.Choice(list(RECIPES)),
    help="Task sizes and optimiser.  [default: the recipe of the base]",
)
@click.option(
    "--base",
    "trained",
    type=Weights(),
    required=True,
    help="Folder of a base run, whose best weights are used, or a trained network, by name or "
    "file; they stay as they are.",
)
@click.option(
    "--teacher",
    type=Weights(),
    help="A trained network, by name or file, whose gains to learn instead of those of the base.",
)
@run_options
def alpha(
    recipe_name: str | None,
    trained: Path,
    teacher: Path | None,
    folder: Path,
    steps: int | None,
    overrides: tuple[str, ...],
    start: Path | None,
    corpus_folder: Path | None,
    **options: Any,
) -> None:
    """Train the alpha network: the gains PES, MES and JES, whose mean is the acquisition.

    Prior and network are those of the base.

    \b
    Examples:
      amortes train alpha --base runs/k1 --run runs/k1-alpha
      amortes train alpha --base runs/k1 --run runs/k1-wide --set config.gain_width=128
      amortes train alpha --base runs/t1 --run runs/t1-alpha --teacher kernel-paper

    Progress shows the negative log-likelihood of the gains; metrics.jsonl also has their R^2.
    """
    source = Base.open(trained).recipe
    name = recipe_name or source.name
    _require_kind(name, source.network, trained)
    settings = _with_steps(overrides, steps)
    chosen = recipe(name, "alpha", source.prior, settings, config=source.config)
    _train(folder, chosen, corpus_folder, options, base=trained, teacher=teacher, start=start)


@train.command()
@recipe_option
@prior_option
@click.option(
    "--stage", type=click.Choice(STAGES), default="base", show_default=True, help="Which stage."
)
@click.option("--steps", type=POSITIVE, default=10, show_default=True, help="Steps to time.")
@recipe_set_option
@threads_option
@device_option
@compile_option
@json_option
def bench(
    recipe_name: str,
    prior: str,
    stage: Any,
    steps: int,
    overrides: tuple[str, ...],
    threads: int | None,
    device: str,
    compiled: bool,
    as_json: bool,
) -> None:
    """Measure a training step: datasets per second, where the time goes, share of the peak.

    Data, forward, backward and optimiser are shares of the time. The peak is that of one large
    float32 matrix product on the same threads; the share of it counts matrix products only.

    \b
    Examples:
      amortes train bench --recipe kernel --threads 1
      amortes train bench --recipe transformer --stage alpha --set tasks.batch_size=64
    """
    chosen = recipe(recipe_name, stage, named_prior(prior), overrides)
    with loop.torch_settings(threads):
        result = measure(chosen, steps=steps, device=device, compiled=compiled)
    row = {"recipe": chosen.name, "stage": chosen.stage, **dataclasses.asdict(result)}
    if as_json:
        show_rows([row], as_json=True)
    else:
        lines = [
            {"quantity": name.replace("_", " "), "value": value} for name, value in row.items()
        ]
        show_rows(lines, as_json=False)


@train.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@figure_option("out/curves.png")
def curves(runs: tuple[Path, ...], output: Path) -> None:
    """Draw the learning curves of one or more RUNS; they may still be going on.

    \b
    Example:
      amortes train curves runs/base runs/alpha -o out/curves.svg
    """
    from amortes.training.figure import draw_curves  # matplotlib takes a while to import

    write_figure(draw_curves([Run.open(folder) for folder in runs]), output)


def _with_steps(overrides: tuple[str, ...], steps: int | None) -> list[str]:
    return [*overrides, *([f"steps={steps}"] if steps is not None else [])]


def _require_kind(name: str, network: str, place: Path) -> None:
    if RECIPES[name]("base", named_prior("paper")).network != network:
        raise ConfigError(
            f"recipe: {name} trains another kind of network than {network}, the one in {place}."
        )


def _train(
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
    elif chosen.stage == "base":
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
