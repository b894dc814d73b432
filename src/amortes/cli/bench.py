"""`amortes bench`: how fast and how good the optimiser's parts are."""

import click

from amortes.cli.lazy import LazyGroup

COMMANDS = {
    "search": ("amortes.cli.bench_search:search", "Our search for the best point, and BoTorch's."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def bench() -> None:
    """Measure the parts of the optimiser on this machine.

    \b
    Examples:
      amortes bench search                                 closed-form network, LogEI
      amortes bench search weights.safetensors --score jes --dims 2,6 --points 20,50
    """
