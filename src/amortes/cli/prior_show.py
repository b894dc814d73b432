"""`amortes prior show`: look at the prior."""

from pathlib import Path

import click

from amortes.cli.console import NATURAL, figure_option, option, write_figure


@click.command()
@option(
    "--prior", "name", default="real", help="Name of the prior: paper, paper-1d, robust or real."
)
@option("--seed", default=0, type=NATURAL, help="Which functions to draw.")
@option("--context", default=20, type=click.IntRange(1, 200),
        help="Points of the simulated optimisation run.")  # fmt: skip
@figure_option("out/prior.png")
def show(name: str, seed: int, context: int, output: Path) -> None:
    """Draw functions from a prior, with their maxima, in one and two dimensions.

    Each comes with a simulated optimisation run (a trace), which is what a network is trained on.

    \b
    Example:
      amortes prior show --prior paper --seed 7 --output out/paper.svg
    """
    from amortes.prior.gp import named_prior
    from amortes.prior.prior_figure import draw_prior

    write_figure(draw_prior(named_prior(name), seed=seed, context=context), output)
