"""`amortes train base`: the stage that learns to predict."""

from pathlib import Path
from typing import Any

import click

from amortes.cli.train_options import (
    prior_option,
    recipe_option,
    require_kind,
    run_options,
    train,
    with_steps,
)
from amortes.prior.gp import named_prior
from amortes.training.export import load_network
from amortes.training.recipes import recipe


@click.command()
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

    A kernel network computes these; it learns to infer hyperparameters.

    \b
    Examples:
      amortes train base --run runs/k1                         kernel network, prior real
      amortes train base --prior paper --run runs/k2 --hours 0.5
      amortes train base --recipe transformer --run runs/t1 --workers 1
      amortes train base --run runs/k3 --set lr=1e-3 --set tasks.batch_size=64
      amortes train base --recipe transformer --run runs/t2 --start transformer-paper

    The loss is the excess cross-entropy, in nats, over someone who knows the hyperparameters; that
    of kernel networks is the negative log density of the hyperparameters.
    """
    config = {}
    if start is not None:
        network, card = load_network(start)
        require_kind(recipe_name, "base", card.network, start)
        config = {"config": network.config}
    settings = with_steps(overrides, steps)
    chosen = recipe(recipe_name, "base", named_prior(prior), settings, **config)
    train(folder, chosen, corpus_folder, options, start=start)
