"""`amortes train`: its commands, their options, and progress for people and for log files."""

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import (
    ERR,
    NATURAL,
    PATH,
    POSITIVE,
    counting,
    figure_option,
    json_option,
    option,
    options,
    set_option,
    show_rows,
    write_figure,
)
from amortes.cli.weights import Weights
from amortes.corpora.corpus import Corpus
from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS, named_prior
from amortes.training import loop
from amortes.training.distributed import torch_settings
from amortes.training.export import load_network
from amortes.training.learning_curves import draw_curves
from amortes.training.recipes import RECIPES, STAGES, Recipe, needs_alpha, recipe
from amortes.training.run import TrainingRun
from amortes.training.stages import Base
from amortes.training.throughput import bench as measure

NAMES = click.Choice(list(RECIPES))
source_options = options(
    option("--recipe", "recipe_name", type=NAMES, default="kernel",
           help="Network, task sizes and optimiser; see `amortes train --help`."),
    option("--prior", type=click.Choice(list(PRIORS)), default="real",
           help="Prior to draw functions from; see `amortes prior --help`."),
)  # fmt: skip
recipe_set_option = set_option("the recipe, such as lr=3e-3 or tasks.batch_size=64")
compute_options = options(
    option("--threads", type=POSITIVE, help="Number of PyTorch threads.  [default: all cores]"),
    option("--device", default="cpu", help="cpu, or cuda (which uses bfloat16 where it is safe)."),
    option("--compile", "compiled", is_flag=True,
           help="Use torch.compile. Every dimension is compiled, so the start takes minutes; "
                "`amortes train bench` shows whether it pays."),
)  # fmt: skip
run_options = options(
    option("--run", "folder", type=PATH, required=True,
           help="Folder of the run; if it exists, the run continues."),
    option("--steps", type=POSITIVE, help="Length of the run in steps; the same as --set steps=N."),
    option("--hours", type=click.FloatRange(min=0),
           help="Stop after this many hours; the same command continues."),
    recipe_set_option,
    option("--start", type=Weights(),
           help="Start from the weights of this trained network (name or file), which may "
                "have another prior."),
    option("--corpus", "corpus_folder", type=PATH,
           help="Folder from `amortes prior generate`.  [default: draw functions on the fly]"),
    option("--workers", type=NATURAL, default=0, help="Processes that prepare batches."),
    compute_options,
)  # fmt: skip


@click.command()
@source_options
@run_options
def base(recipe_name: str, prior: str, start: Path | None, **options: Any) -> None:
    """Train the base stage of a network.

    A kernel network learns to infer hyperparameters, and computes everything else. A transformer
    learns to predict from data, and from hints: the location x* of the optimum, its value f*, both.

    \b
    Examples:
      amortes train base --run runs/k1                         kernel network, prior real
      amortes train base --prior paper --run runs/k2 --hours 0.5
      amortes train base --recipe transformer --run runs/t1 --workers 1
      amortes train base --run runs/k3 --set lr=1e-3 --set tasks.batch_size=64
      amortes train base --recipe transformer --run runs/t2 --start transformer-paper

    The loss of a transformer is its cross-entropy in nats, minus that of a model that knows the
    true hyperparameters; that of a kernel network is the negative log density of the
    hyperparameters.
    """
    config = {}
    if start is not None:
        network, card = load_network(start)
        require_kind(recipe_name, card.network, start)
        config = {"config": network.config}
    chosen = recipe(recipe_name, "base", named_prior(prior), settings_of(options), **config)
    run(chosen, start=start, **options)


@click.command()
@option("--recipe", "recipe_name", type=NAMES,
        help="Task sizes and optimiser.  [default: the recipe of the base]")  # fmt: skip
@option("--base", "trained", type=Weights(), required=True,
        help="Base to train on: the folder of a base run, or a trained network (name or "
             "file). Its weights do not change.")  # fmt: skip
@run_options
def alpha(recipe_name: str | None, trained: Path, **options: Any) -> None:
    """Train the alpha stage of a network: the information gains PES, MES and JES.

    The prior and the architecture are those of the base. A kernel network learns what many draws of
    the optimum tell; without an alpha stage it takes such draws itself, which is slower. A
    transformer learns what the optimum takes off the entropy of its own base.

    \b
    Examples:
      amortes train alpha --base runs/t1 --run runs/t1-alpha
      amortes train alpha --base runs/t1 --run runs/t1-fine --set config.gain_bars=400
      amortes train alpha --base kernel-real --run runs/k1-alpha --workers 1

    The loss of a transformer is the negative log-likelihood of the gains, that of a kernel network
    a sum of errors, of gains and of what they are made of. metrics.jsonl also has the R^2 of gains.
    """
    opened = Base.open(trained)
    source = opened.recipe
    name = recipe_name or source.name
    recipe(name, "alpha", source.prior)  # says so if there is no such stage
    require_kind(name, source.network, trained)
    settings = settings_of(options)
    run(recipe(name, "alpha", source.prior, settings, config=source.config), base=opened, **options)


@click.command()
@source_options
@option("--stage", type=click.Choice(STAGES), default="base", help="Stage to measure.")
@option("--steps", type=POSITIVE, default=10, help="Steps to time.")
@recipe_set_option
@compute_options
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
    """Measure a training step: datasets per second, and where the time goes.

    Data, forward, backward and optimiser are shares of the time. The share of the peak compares the
    matrix products of a step with one large float32 matrix product on the same threads.

    \b
    Examples:
      amortes train bench --recipe kernel --threads 1
      amortes train bench --recipe transformer --stage alpha --set tasks.batch_size=64
    """
    chosen = recipe(recipe_name, stage, named_prior(prior), overrides)
    with torch_settings(threads):
        result = measure(chosen, steps=steps, device=device, compiled=compiled)
    row = {"recipe": chosen.name, "stage": chosen.stage, **result}
    lines = [{"quantity": name.replace("_", " "), "value": value} for name, value in row.items()]
    show_rows([row] if as_json else lines, as_json=as_json)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@figure_option("out/curves.png")
def curves(runs: tuple[Path, ...], output: Path) -> None:
    """Draw the learning curves of one or more RUNS, finished or not.

    \b
    Example:
      amortes train curves runs/base runs/alpha -o out/curves.svg
    """
    write_figure(draw_curves([TrainingRun.open(folder) for folder in runs]), output)


def settings_of(options: dict[str, Any]) -> list[str]:
    """Take the settings of --set and --steps out of the options."""
    overrides, steps = options.pop("overrides"), options.pop("steps")
    return [*overrides, *([f"steps={steps}"] if steps is not None else [])]


def require_kind(name: str, network: str, place: Path) -> None:
    """Refuse a recipe for another kind of network than `network`, which is in `place`."""
    if RECIPES[name]["network"] != network:
        raise ConfigError(
            f"recipe: {name} trains another kind of network than {network}, the one in {place}."
        )


def run(chosen: Recipe, *, folder: Path, corpus_folder: Path | None, **options: Any) -> None:
    """Train with a progress bar; afterwards say how it ended and what can be done next."""
    timed = options["hours"] is not None
    with counting("steps", chosen.stage, chosen.steps) as update:
        outcome = loop.train(
            folder,
            chosen,
            corpus=Corpus.open(corpus_folder) if corpus_folder is not None else None,
            report=lambda status: _show(status, update, timed=timed),
            **options,
        )
    if outcome.reason == "interrupted":
        raise KeyboardInterrupt
    if int(os.environ.get("RANK", "0")) > 0:  # one of several processes does the talking
        return
    score = "" if outcome.best_score is None else f", best validation {outcome.best_score:.4f}"
    ERR.print(f"Step {outcome.step} of {chosen.steps}{score}, in {folder}.", soft_wrap=True)
    if outcome.reason == "out of time":
        ERR.print("Out of time. Run the same command again to continue.")
    elif chosen.stage == "base" and needs_alpha(chosen.network):
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
