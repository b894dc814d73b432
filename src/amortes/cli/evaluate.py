"""`amortes evaluate base`, `alpha` and `figure`: a network beside independent oracles."""

import dataclasses
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import (
    FOLDER,
    NATURAL,
    counting,
    figure_option,
    json_option,
    option,
    options,
    parse_cells,
    show_rows,
    write_figure,
)
from amortes.cli.weights import Weights
from amortes.errors import FileError
from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.oracles import alpha_scores
from amortes.oracles.base_scores import DATASETS, Cell, average, base_score, grid, references
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.gain_figure import draw_gains
from amortes.pretrained import as_network
from amortes.prior.gp import PRIORS, named_prior
from amortes.training.export import load_network
from amortes.training.recipes import build_network

weights_argument = click.argument("weights", type=Weights())
oracle_options = options(
    weights_argument,
    option("--prior", "prior_name", type=click.Choice(list(PRIORS)),
           help="Prior to draw tasks from.  [default: the prior of the weights]"),
    option("--cache", type=FOLDER,
           help="Folder for reference results that do not come with the package.  "
                "[default: $AMORTES_CACHE or ~/.cache/amortes]"),
    json_option,
)  # fmt: skip


@click.command()
@option("--cells", callback=parse_cells, metavar="d:n,...",
        help="Dimensions and dataset sizes.  [default: d in 1, 2, 4, 6, 12 and n in 5, 20, 45, "
             "100, as far as the prior goes]")  # fmt: skip
@option("--datasets", type=click.IntRange(2, DATASETS), default=DATASETS, help="Datasets per cell.")
@oracle_options
def base(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell],
    datasets: int,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Score the predictions of WEIGHTS against a fully Bayesian Gaussian process.

    \b
    Columns, each a mean over the datasets of a cell:
      excess, error       cross-entropy above the reference (SMC over hyperparameters), in nats
      cover 50, 90        mass inside the central 50 % and 90 % intervals; should be 0.5 and 0.9
      gain x, f, both     log-likelihood gained by being told x*, f*, or both

    \b
    Examples:
      amortes evaluate base mine.safetensors
      amortes evaluate base mine.safetensors --cells 1:5,6:20 --datasets 8
      amortes evaluate base mine.safetensors --json > scores.json

    To show what learning buys, a kernel network is also scored with its encoder untrained, and with
    hill climbing on the likelihood instead of an encoder.
    """
    network, _ = load_network(weights)
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or grid(prior)
    variants = _variants(network)
    with counting("cells", "reference", len(cells)) as update:
        found = references(
            prior,
            cells,
            cache,
            lambda c: update(advance=1, note=f"d={c[0]} n={c[1]}"),
            datasets,
        )
    rows = []
    with counting("cells", "network", len(cells) * len(variants)) as update:
        for name, variant in variants.items():
            own = []
            for cell in cells:
                update(note=f"{name}, d={cell[0]} n={cell[1]}")
                own.append(base_score(name, variant, cell, found[cell], datasets))
                update(advance=1)
            rows += [*own, *average(own)]
    show_scores(rows, "network", f"{weights.name} on prior {prior.name}", as_json=as_json)


@click.command()
@option("--cells", callback=parse_cells, metavar="d:n,...",
        help="Dimensions and dataset sizes.  [default: d in 1, 2 with n in 3, 8, 20, and 50 with "
             "queries near the best point; 4:20, 6:50, 10:50]")  # fmt: skip
@option("--tasks", type=click.IntRange(1, alpha_scores.MAX_TASKS), help="Tasks per cell.",
        default=alpha_scores.DEFAULT_TASKS)  # fmt: skip
@option("--botorch/--no-botorch", default=True, show_default=False,
        help="Also score BoTorch (the default).")  # fmt: skip
@oracle_options
def alpha(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell],
    tasks: int,
    botorch: bool,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Score the information gains of WEIGHTS against brute force, in 1-D and 2-D.

    With more dimensions the reference is the closed form with 256 draws of the optimum.

    \b
    Rows:
      learned       the network as it is
      untrained     a kernel network whose gain network is not trained
      draws         a kernel network with draws of the optimum instead
      monte carlo   Monte Carlo over the base
      botorch       BoTorch: PES, GIBBON (mes) and JES, on exact GP samples

    \b
    Columns, each a mean over tasks:
      rank          rank correlation over x with the gains of the reference
      regret        gain lost by evaluating at the maximum, as a share of the best
      size          gains over those of the reference, at the best quarter of points

    JSON also contains the number of tasks in which the reference is precise enough to rank points,
    and the ceiling: the rank correlation that a perfect acquisition function would have. It is
    below 1 because brute force has an error, too.

    \b
    Examples:
      amortes evaluate alpha mine.safetensors
      amortes evaluate alpha mine.safetensors --cells 1:8 --tasks 2 --no-botorch
    """
    network, card = load_network(weights)
    if network.needs_alpha and "alpha" not in card.stages:
        raise FileError(f"{weights} has no trained gains; export the run of an alpha stage.")
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or alpha_scores.grid(prior)
    scores = []
    with counting("tasks", "brute force", len(cells) * tasks) as update:
        found = alpha_scores.alpha_tasks(
            network,
            prior,
            cells,
            tasks,
            botorch=botorch,
            cache=cache,
            on_task=lambda label: update(advance=1, note=label),
        )
        for cell, one in found:
            scores += alpha_scores.alpha_scores(network, cell, one)
    title = f"{weights.name} on prior {prior.name}"
    show_scores(alpha_scores.summarise(scores), "gain", title, as_json=as_json)


@click.command()
@weights_argument
@option("--seed", default=0, type=NATURAL)
@option("--context", default=8, type=click.IntRange(1, 200), help="Number of observations.")
@figure_option("out/figure.png")
def figure(weights: Path, seed: int, context: int, output: Path) -> None:
    """Draw predictions and information gains for a function in one dimension, as in the paper.

    The figure shows the exact Gaussian process, Monte Carlo over the base network, and the alpha
    network side by side. It takes half a minute.

    \b
    Example:
      amortes evaluate figure mine.safetensors --seed 3 --context 12 -o out/figure.svg
    """
    network = as_network(weights, gains=True)
    config = BruteForceConfig()
    with counting("repeats", "brute force", config.repeats) as update:
        drawn = draw_gains(
            network, seed=seed, context=context, config=config, on_repeat=lambda: update(advance=1)
        )
    write_figure(drawn, output)


def _variants(network: Network[Any]) -> dict[str, Network[Any]]:
    """The network and, if it learned to infer, the same untrained and without an encoder."""
    if not isinstance(network, KernelNetwork) or network.encoder is None:
        return {"network": network}
    without = dataclasses.replace(network.config, encoder=None)
    untrained = build_network("kernel", network.config, network.prior)
    climbs = build_network("kernel", without, network.prior)
    return {"learned": network, "untrained": untrained.eval(), "climbs": climbs.eval()}


def show_scores(rows: list[dict[str, Any]], by: str, title: str, *, as_json: bool) -> None:
    """Print JSON, or a table for each value of column `by`, rounded to fit 80 characters."""
    if as_json:
        show_rows(rows, as_json=True)
        return
    for value in dict.fromkeys(row[by] for row in rows):
        table = [
            {
                name: round(cell, 3) if isinstance(cell, float) else cell
                for name, cell in row.items()
                if name not in (by, "ceiling", "tasks")
            }
            for row in rows
            if row[by] == value
        ]
        show_rows(table, as_json=False, title=f"{title}: {value}")
