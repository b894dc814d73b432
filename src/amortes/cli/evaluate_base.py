"""`amortes evaluate base`: predictions beside the fully Bayesian ones."""

import dataclasses
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import counting, json_option, option
from amortes.cli.evaluate_options import (
    cache_option,
    cells_option,
    prior_option,
    show_scores,
    weights_argument,
)
from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.oracles.base_scores import average, base_score
from amortes.oracles.reference import DATASETS, Cell, grid, references
from amortes.prior.gp import named_prior
from amortes.training.architectures import build_network
from amortes.training.export import load_network


@click.command()
@weights_argument
@prior_option
@cells_option(
    "Dimensions and dataset sizes.  [default: d in 1, 2, 4, 6, 12 and n in 5, 20, 45, 100, "
    "as far as the prior goes]"
)
@option("--datasets", type=click.IntRange(2, DATASETS), default=DATASETS, help="Datasets per cell.")
@cache_option
@json_option
def base(
    weights: Path,
    prior_name: str | None,
    cells: list[Cell],
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

    A kernel network is also scored with its encoder untrained, and with climbs of the likelihood in
    place of an encoder, to show what learning buys.
    """
    network, _ = load_network(weights)
    prior = named_prior(prior_name) if prior_name else network.prior
    cells = cells or grid(prior)
    variants = _variants(network)
    with counting("cells", "reference", len(cells)) as update:
        found = references(
            prior, cells, cache, lambda c: update(advance=1, note=f"d={c[0]} n={c[1]}")
        )
    scores = {}
    with counting("cells", "network", len(cells) * len(variants)) as update:
        for name, variant in variants.items():
            own = []
            for cell in cells:
                update(note=f"{name}, d={cell[0]} n={cell[1]}")
                own.append(base_score(name, variant, cell, found[cell], datasets))
                update(advance=1)
            scores[name] = [*own, *average(own)]
    rows = [dataclasses.asdict(score) for own in scores.values() for score in own]
    show_scores(rows, "network", f"{weights.name} on prior {prior.name}", as_json=as_json)


def _variants(network: Network[Any]) -> dict[str, Network[Any]]:
    """The network and, if it learned to infer, the same untrained and without an encoder."""
    if not isinstance(network, KernelNetwork) or network.encoder is None:
        return {"network": network}
    without = dataclasses.replace(network.config, encoder=None)
    untrained = build_network("kernel", network.config, network.prior)
    climbs = KernelNetwork(without, network.prior)
    return {"learned": network, "untrained": untrained.eval(), "climbs": climbs.eval()}
