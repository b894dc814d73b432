"""`amortes evaluate`: weights against independent, slow and trustworthy answers."""

import click

from amortes.cli.lazy import LazyGroup

COMMANDS = {
    "base": ("amortes.cli.evaluate_base:base", "Predictions against the fully Bayesian GP."),
    "alpha": ("amortes.cli.evaluate_alpha:alpha", "Acquisitions against brute force and BoTorch."),
    "figure": ("amortes.cli.evaluate_figure:figure", "The paper's figure of both in 1-D."),
    "prior": ("amortes.cli.evaluate_prior:prior", "Priors on traces of real optimisation runs."),
    "bo": ("amortes.cli.evaluate_bo:bo", "Optimisation of functions of the prior."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def evaluate() -> None:
    """Compare weights (a file, or a name of `amortes info`) with independent oracles.

    \b
    Examples:
      amortes evaluate base kernel-real              predictions against the fully Bayesian GP
      amortes evaluate alpha kernel.safetensors      acquisitions against brute force, BoTorch
      amortes evaluate figure kernel.safetensors -o out/figure.png
      amortes evaluate bo kernel.safetensors         optimisation of functions of its prior
      amortes evaluate prior kernel-real kernel.safetensors        real runs, beside a baseline

    What the oracles found for the priors paper and robust is part of the package (for alpha: in
    1-D and 2-D); the rest is computed when first needed (minutes) and kept in a cache.
    """
