"""`amortes train bench`: how fast a training step is."""

import dataclasses
from typing import Any

import click

from amortes.cli.console import POSITIVE, json_option, option, show_rows
from amortes.cli.train_options import (
    compile_option,
    device_option,
    prior_option,
    recipe_option,
    recipe_set_option,
    threads_option,
)
from amortes.prior.gp import named_prior
from amortes.training import loop
from amortes.training.recipes import STAGES, recipe
from amortes.training.throughput import bench as measure


@click.command()
@recipe_option
@prior_option
@option("--stage", type=click.Choice(STAGES), default="base", help="Which stage.")
@option("--steps", type=POSITIVE, default=10, help="Steps to time.")
@recipe_set_option
@threads_option
@device_option
@compile_option
@json_option
def bench(
    recipe_name: str,
    prior: str,
    stage: Any,
    steps: int,
    overrides: tuple[str, ...],
    threads: int | None,
    device: str,
    compiled: bool,
    as_json: bool,
) -> None:
    """Measure a training step: datasets per second, where the time goes, share of the peak.

    Data, forward, backward and optimiser are shares of the time. The peak is that of one large
    float32 matrix product on the same threads; the share of it counts matrix products only.

    \b
    Examples:
      amortes train bench --recipe kernel --threads 1
      amortes train bench --recipe transformer --stage alpha --set tasks.batch_size=64
    """
    chosen = recipe(recipe_name, stage, named_prior(prior), overrides)
    with loop.torch_settings(threads):
        result = measure(chosen, steps=steps, device=device, compiled=compiled)
    row = {"recipe": chosen.name, "stage": chosen.stage, **dataclasses.asdict(result)}
    if as_json:
        show_rows([row], as_json=True)
    else:
        lines = [
            {"quantity": name.replace("_", " "), "value": value} for name, value in row.items()
        ]
        show_rows(lines, as_json=False)
