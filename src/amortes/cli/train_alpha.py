"""`amortes train alpha`: the stage that learns gains."""

from pathlib import Path
from typing import Any

import click

from amortes.cli.console import option
from amortes.cli.train_options import require_kind, run_options, train, with_steps
from amortes.cli.weights import Weights
from amortes.training.recipes import RECIPES, recipe
from amortes.training.stages import Base


@click.command()
@option("--recipe", "recipe_name", type=click.Choice(list(RECIPES)),
        help="Task sizes and optimiser.  [default: the recipe of the base]")  # fmt: skip
@option("--base", "trained", type=Weights(), required=True,
        help="Folder of a base run, whose best weights are used, or a trained "
             "network, by name or file; they stay as they are.")  # fmt: skip
@option("--teacher", type=Weights(),
        help="A trained network, by name or file, whose gains to learn instead of "
             "those of the base.")  # fmt: skip
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

    Prior and network are those of the base. Kernel networks compute their gains: they have no such
    stage.

    \b
    Examples:
      amortes train alpha --base runs/t1 --run runs/t1-alpha
      amortes train alpha --base runs/t1 --run runs/t1-fine --set config.gain_bars=400
      amortes train alpha --base runs/t1 --run runs/t1-taught --teacher kernel-paper

    Progress shows the negative log-likelihood of the gains; metrics.jsonl also has their R^2.
    """
    opened = Base.open(trained)
    source = opened.recipe
    name = recipe_name or source.name
    require_kind(name, "alpha", source.network, trained)
    settings = with_steps(overrides, steps)
    chosen = recipe(name, "alpha", source.prior, settings, config=source.config)
    train(folder, chosen, corpus_folder, options, base=opened, teacher=teacher, start=start)
