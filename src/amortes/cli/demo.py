"""`amortes demo`: watch entropy search at work."""

import math
import time
from pathlib import Path

import click
from rich.live import Live
from rich.table import Table

from amortes.bench.demo import METHODS, Runner, draw_regrets, race
from amortes.cli.console import ERR, OUT, figure_option, write_figure
from amortes.command.view import sparkline

REFRESH = 0.2
"""Seconds between pictures."""


@click.command()
@click.option("--evaluations", type=click.IntRange(min=8), default=40, show_default=True,
              help="Evaluations of each method.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True,
              help="Races, each with its own initial points and noise.")  # fmt: skip
@figure_option("out/demo.png")
def demo(evaluations: int, seeds: int, output: Path) -> None:
    """Optimise a noisy function in six dimensions: JES beside LogEI and random search.

    The function is Hartmann-6 with noise of standard deviation 0.316. All methods have the same
    initial points and the same noise, and recommend the maximiser of the posterior mean; shown is
    the regret of that point, which only the demo knows. A race or two show how it works, not who is
    better: `amortes bench` does that.

    \b
    Examples:
      amortes demo
      amortes demo --seeds 5 --evaluations 60 -o out/five.svg
    """
    races: list[list[Runner]] = []
    with Live(console=ERR, auto_refresh=False, transient=True) as live:
        drawn = 0.0
        for seed in range(seeds):
            for runners in race(evaluations, seed=seed):
                if ERR.is_terminal and time.monotonic() - drawn > REFRESH:
                    picture = _table(runners, evaluations, f"race {seed + 1} of {seeds}")
                    live.update(picture, refresh=True)
                    drawn = time.monotonic()
            races.append(runners)
    for seed, runners in enumerate(races):
        OUT.print(_table(runners, evaluations, f"race {seed + 1} of {seeds}"))
    write_figure(draw_regrets(races), output)


def _table(runners: list[Runner], evaluations: int, title: str) -> Table:
    table = Table(title=f"Noisy Hartmann-6, {title}", title_justify="left", box=None)
    table.add_column("method")
    table.add_column("points", justify="right")
    table.add_column("logarithm of the regret", min_width=evaluations - runners[0].first + 1)
    table.add_column("now", justify="right")
    table.add_column("ms/point", justify="right")
    curves = [[math.log(max(regret, 1e-6)) for regret in runner.regrets] for runner in runners]
    known = [value for curve in curves for value in curve]
    limits = (min(known), max(known)) if known else None
    for runner, curve in zip(runners, curves, strict=True):
        table.add_row(
            METHODS[runner.method],
            str(runner.evaluations),
            sparkline(curve, limits),
            f"{runner.regrets[-1]:.3f}" if runner.regrets else "",
            f"{1e3 * runner.seconds / max(runner.evaluations, 1):.0f}",
        )
    return table
