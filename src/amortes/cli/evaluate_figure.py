"""`amortes evaluate figure`: predictions and acquisitions of one function."""

from pathlib import Path

import click

from amortes.cli.console import figure_option, progress, write_figure
from amortes.cli.evaluate_options import weights_argument
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.gain_figure import draw_gains
from amortes.pretrained import as_network


@click.command()
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
    network = as_network(weights, gains=True)
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
