"""`amortes bench search`: the search for the maximum of a score."""

import dataclasses
from pathlib import Path

import click

from amortes.acquisition.bench import compare
from amortes.acquisition.fitted import SCORES
from amortes.cli.console import NATURAL, POSITIVE, counting, json_option, option, show_rows
from amortes.cli.parsing import parse_sizes
from amortes.cli.weights import Weights
from amortes.nets.base import GAINS
from amortes.pretrained import DEFAULT, as_network


@click.command()
@click.argument("weights", default=DEFAULT, type=Weights())
@option(
    "--score", type=click.Choice(SCORES), default="jes", help="Acquisition function to maximise."
)
@option("--dims", callback=parse_sizes, default="2,6", metavar="D,D,...",
        help="Numbers of dimensions.")  # fmt: skip
@option("--points", callback=parse_sizes, default="20,50", metavar="N,N,...",
        help="Numbers of observed points.")  # fmt: skip
@option("--datasets", type=POSITIVE, default=20, help="Datasets per size.")
@option("--seed", type=NATURAL, default=0, help="Which datasets.")
@json_option
def search(
    weights: Path,
    score: str,
    dims: tuple[int, ...],
    points: tuple[int, ...],
    datasets: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the search for the best acquisition value with BoTorch's optimize_acqf.

    Both maximise the same acquisition function of the network in WEIGHTS (by default the one that
    comes with amortes) on datasets drawn from its prior. optimize_acqf uses 128 raw samples and 10
    restarts. In the column `missed`, 0 is the best value known and 1 that of a random point.

    \b
    Examples:
      amortes bench search --datasets 5
      amortes bench search weights.safetensors --score jes --dims 6 --points 50
    """
    network = as_network(weights, gains=score in GAINS)
    rows = []
    with counting("sizes", "searching", len(dims) * len(points)) as update:
        for d in dims:
            network.prior.check_dim(d)
            for n in points:
                update(note=f"d={d} n={n}")
                rows += compare(network, d=d, n=n, score=score, datasets=datasets, seed=seed)
                update(advance=1)
    table = [dataclasses.asdict(row) for row in rows]
    if not as_json:  # what is the same in all rows goes into the title
        table = [{k: v for k, v in row.items() if k not in ("score", "datasets")} for row in table]
    show_rows(table, as_json=as_json, title=f"{score}, {datasets} datasets of each size")
