"""`amortes evaluate`: weights against independent, slow and trustworthy answers."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import figure_option, json_option, progress, show_rows, write_figure
from amortes.cli.evaluate_bo import bo
from amortes.cli.weights import Weights
from amortes.errors import FileError
from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.oracles import alpha_tasks
from amortes.oracles.alpha_scores import alpha_scores, summarise
from amortes.oracles.base_scores import average, base_score
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.figure import draw_gains
from amortes.oracles.reference import DATASETS, Cell, grid, references
from amortes.prior.gp import PRIORS, named_prior
from amortes.training.export import load_network

weights_argument = click.argument("weights", type=Weights())
prior_option = click.option(
    "--prior",
    "prior_name",
    type=click.Choice(list(PRIORS)),
    help="Where the tasks come from.  [default: the prior of the weights]",
)
cache_option = click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for oracle results that are not part of the package.  "
    "[default: $AMORTES_CACHE or ~/.cache/amortes]",
)


def _parse_cells(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> list[Cell] | None:
    """Turn "1:5,4:20" into [(1, 5), (4, 20)]."""
    if value is None:
        return None
    try:
        cells = [(int(d), int(n)) for d, n in (cell.split(":") for cell in value.split(","))]
    except ValueError:
        cells = []
    if min((min(cell) for cell in cells), default=0) < 1:
        raise click.BadParameter(
            f"{value!r} is not a list of d:n with d and n of at least 1, as in 1:5,4:20."
        )
    return cells


@click.group()
def evaluate() -> None:
    """Compare weights (a file, or a name of `amortes info`) with independent oracles.

    \b
    Examples:
      amortes evaluate base kernel-robust            predictions against the fully Bayesian GP
      amortes evaluate alpha kernel.safetensors      acquisitions against brute force, BoTorch
      amortes evaluate figure kernel.safetensors -o out/figure.png
      amortes evaluate bo kernel.safetensors         optimisation of functions of its prior

    What the oracles found for the priors paper and robust is part of the package (for alpha: in
    1-D and 2-D); the rest is computed when first needed (minutes) and kept in a cache.
    """


evaluate.add_command(bo)


@evaluate.command()
@weights_argument
@prior_option
@click.option(
    "--cells",
    callback=_parse_cells,
    metavar="d:n,...",
    help="Dimensions and dataset sizes.  [default: d in 1, 2, 4, 6, 12 and n in 5, 20, 45, 100, "
    "as far as the prior goes]",
)
@click.option(
    "--datasets",
    type=click.IntRange(2, DATASETS),
    default=DATASETS,
    show_default=True,
    help="Datasets per cell.",
)
@cache_option
@json_option
def base(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell] | None,
    datasets: int,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Score the predictions of WEIGHTS against the fully Bayesian predictive.

    \b
    Columns, each a mean over the datasets of a cell:
      excess, error       cross-entropy above the reference (SMC over hyperparameters), in nats
      cover 50, 90        mass inside the central 50 % and 90 % intervals; should be 0.5 and 0.9
      gain x, f, both     log-likelihood gained by being told x*, f*, or both

    \b
    Examples:
      amortes evaluate base kernel.safetensors
      amortes evaluate base kernel.safetensors --cells 1:5,6:20 --datasets 8
      amortes evaluate base kernel.safetensors --json > scores.json

    A kernel network is also scored without its learned correction ("closed form"), to show what
    learning buys.
    """
    network, _ = load_network(weights)
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or grid(prior)
    variants = _variants(network)
    with progress("cells") as bar:
        task = bar.add_task("reference", total=len(cells), note="")

        def show(cell: Cell) -> None:
            bar.update(task, advance=1, note=f"d={cell[0]} n={cell[1]}")

        found = references(prior, cells, cache, show)
    scores = {}
    with progress("cells") as bar:
        task = bar.add_task("network", total=len(cells) * len(variants), note="")
        for name, variant in variants.items():
            own = []
            for cell in cells:
                bar.update(task, note=f"{name}, d={cell[0]} n={cell[1]}")
                own.append(base_score(name, variant, cell, found[cell], datasets))
                bar.advance(task)
            scores[name] = [*own, *average(own)]
    rows = [dataclasses.asdict(score) for own in scores.values() for score in own]
    _show(rows, "network", f"{weights.name} on prior {prior.name}", as_json=as_json)


@evaluate.command()
@weights_argument
@prior_option
@click.option(
    "--cells",
    callback=_parse_cells,
    metavar="d:n,...",
    help="Dimensions (1, 2) and dataset sizes.  [default: n in 3, 8, 20, and 50 with queries near "
    "the best point]",
)
@click.option(
    "--tasks",
    type=click.IntRange(1, alpha_tasks.MAX_TASKS),
    default=alpha_tasks.DEFAULT_TASKS,
    show_default=True,
    help="Tasks per cell.",
)
@click.option("--botorch/--no-botorch", default=True, help="Compare with BoTorch, too.")
@cache_option
@json_option
def alpha(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell] | None,
    tasks: int,
    botorch: bool,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Score the acquisitions of WEIGHTS against the brute-force information gain, in 1-D and 2-D.

    \b
    Columns, each a mean over tasks:
      tasks              in which brute force can tell the order of the queries
      alpha              rank correlation over x of the alpha network with brute force
      alpha regret       gain lost by measuring at its maximum, as a share of the best gain
      monte carlo ...    the same for Monte Carlo over the base, which alpha learned from
      botorch ...        the same for BoTorch: PES, GIBBON (mes), JES, on exact GP samples

    JSON also has the ceiling, the rank correlation that a perfect acquisition would have, which is
    below 1 because brute force has an error, too.

    \b
    Examples:
      amortes evaluate alpha kernel.safetensors
      amortes evaluate alpha kernel.safetensors --cells 1:8 --tasks 2 --no-botorch
    """
    network, card = load_network(weights)
    if "alpha" not in card.stages:
        raise FileError(f"{weights} has no trained gains: export the run of an alpha stage.")
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or alpha_tasks.grid(prior)
    scores = []
    with progress("tasks") as bar:
        task = bar.add_task("brute force", total=len(cells) * tasks, note="")

        def show(label: str) -> None:
            bar.update(task, advance=1, note=label)

        found = alpha_tasks.alpha_tasks(
            prior, cells, tasks, botorch=botorch, cache=cache, on_task=show
        )
        for cell, one in found:
            scores += alpha_scores(network, cell, one)
    title = f"{weights.name} on prior {prior.name}"
    _show(summarise(scores), "gain", title, as_json=as_json)


@evaluate.command()
@weights_argument
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--context", default=8, show_default=True, type=click.IntRange(1, 200),
              help="Observations of the function.")  # fmt: skip
@figure_option("out/figure.png")
def figure(weights: Path, seed: int, context: int, output: Path) -> None:
    """Draw the paper's figure: predictions and acquisitions for a function in one dimension.

    The exact Gaussian process, Monte Carlo over the base network, and the alpha network side by
    side; half a minute.

    \b
    Example:
      amortes evaluate figure kernel.safetensors --seed 3 --context 12 -o out/figure.svg
    """
    network, _ = load_network(weights)
    config = BruteForceConfig()
    with progress("repeats") as bar:
        task = bar.add_task("brute force", total=config.repeats, note="")
        drawn = draw_gains(
            network,
            seed=seed,
            context=context,
            config=config,
            on_repeat=lambda: bar.advance(task),
        )
    write_figure(drawn, output)


def _show(rows: list[dict[str, Any]], by: str, title: str, *, as_json: bool) -> None:
    """Print JSON, or a table for each value of column `by`, rounded to fit 80 characters."""
    if as_json:
        show_rows(rows, as_json=True)
        return
    for value in dict.fromkeys(row[by] for row in rows):
        table = [
            {
                name: round(cell, 3) if isinstance(cell, float) else cell
                for name, cell in row.items()
                if name not in (by, "ceiling")
            }
            for row in rows
            if row[by] == value
        ]
        show_rows(table, as_json=False, title=f"{title}: {value}")


def _variants(network: Network[Any]) -> dict[str, Network[Any]]:
    """The network and, if it has a learned correction to closed forms, the same without it."""
    if not isinstance(network, KernelNetwork):
        return {"network": network}
    plain = copy.copy(network)
    plain.use_correction = False
    return {"learned": network, "closed form": plain}
