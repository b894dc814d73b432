"""`amortes evaluate alpha`: acquisitions beside the brute-force information gain."""

from pathlib import Path

import click

from amortes.cli.console import counting, json_option, option
from amortes.cli.evaluate_options import (
    cache_option,
    cells_option,
    prior_option,
    show_scores,
    weights_argument,
)
from amortes.errors import FileError
from amortes.oracles import alpha_tasks
from amortes.oracles.alpha_scores import alpha_scores, summarise
from amortes.oracles.reference import Cell
from amortes.prior.gp import named_prior
from amortes.training.export import load_network


@click.command()
@weights_argument
@prior_option
@cells_option(
    "Dimensions (1, 2) and dataset sizes.  [default: n in 3, 8, 20, and 50 with queries near "
    "the best point]"
)
@option("--tasks", type=click.IntRange(1, alpha_tasks.MAX_TASKS), help="Tasks per cell.",
        default=alpha_tasks.DEFAULT_TASKS)  # fmt: skip
@option(
    "--botorch/--no-botorch", default=True, show_default=False, help="Compare with BoTorch, too."
)
@cache_option
@json_option
def alpha(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell],
    tasks: int,
    botorch: bool,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Score the acquisitions of WEIGHTS against the brute-force information gain, in 1-D and 2-D.

    \b
    Columns, each a mean over tasks:
      tasks              in which brute force can tell the order of the queries
      alpha              rank correlation over x of the gains of the network with brute force
      alpha regret       gain lost by measuring at its maximum, as a share of the best gain
      monte carlo ...    the same for Monte Carlo over the base, from which alpha learns
      botorch ...        the same for BoTorch: PES, GIBBON (mes), JES, on exact GP samples

    JSON also has the ceiling, the rank correlation that a perfect acquisition would have, which is
    below 1 because brute force has an error, too.

    \b
    Examples:
      amortes evaluate alpha kernel.safetensors
      amortes evaluate alpha kernel.safetensors --cells 1:8 --tasks 2 --no-botorch
    """
    network, card = load_network(weights)
    if network.learned_gains and "alpha" not in card.stages:
        raise FileError(f"{weights} has no trained gains: export the run of an alpha stage.")
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or alpha_tasks.grid(prior)
    scores = []
    with counting("tasks", "brute force", len(cells) * tasks) as update:
        found = alpha_tasks.alpha_tasks(
            prior,
            cells,
            tasks,
            botorch=botorch,
            cache=cache,
            on_task=lambda label: update(advance=1, note=label),
        )
        for cell, one in found:
            scores += alpha_scores(network, cell, one)
    title = f"{weights.name} on prior {prior.name}"
    show_scores(summarise(scores), "gain", title, as_json=as_json)
