"""`amortes evaluate figure`: predictions and acquisitions of one function."""

from pathlib import Path

import click

from amortes.cli.console import NATURAL, counting, figure_option, option, write_figure
from amortes.cli.evaluate_options import weights_argument
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.gain_figure import draw_gains
from amortes.pretrained import as_network


@click.command()
@weights_argument
@option("--seed", default=0, type=NATURAL)
@option("--context", default=8, type=click.IntRange(1, 200), help="Observations of the function.")
@figure_option("out/figure.png")
def figure(weights: Path, seed: int, context: int, output: Path) -> None:
    """Draw the paper's figure: predictions and acquisitions for a function in one dimension.

    The exact Gaussian process, Monte Carlo over the base network, and the alpha network side by
    side; half a minute.

    \b
    Example:
      amortes evaluate figure kernel.safetensors --seed 3 --context 12 -o out/figure.svg
    """
    network = as_network(weights, gains=True)
    config = BruteForceConfig()
    with counting("repeats", "brute force", config.repeats) as update:
        drawn = draw_gains(
            network, seed=seed, context=context, config=config, on_repeat=lambda: update(advance=1)
        )
    write_figure(drawn, output)
