"""`amortes train curves`: what runs have learnt so far."""

from pathlib import Path

import click

from amortes.cli.console import PATH, figure_option, write_figure
from amortes.training.learning_curves import draw_curves
from amortes.training.run import TrainingRun


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@figure_option("out/curves.png")
def curves(runs: tuple[Path, ...], output: Path) -> None:
    """Draw the learning curves of one or more RUNS; they may still be going on.

    \b
    Example:
      amortes train curves runs/base runs/alpha -o out/curves.svg
    """
    write_figure(draw_curves([TrainingRun.open(folder) for folder in runs]), output)
