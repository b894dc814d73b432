"""`amortes train`: the two stages of training, and how fast they are."""

import click

from amortes.cli.lazy import LazyGroup

COMMANDS = {
    "base": ("amortes.cli.train_base:base", "Predictions, given nothing, x*, f* or both."),
    "alpha": ("amortes.cli.train_alpha:alpha", "The gains PES, MES and JES."),
    "bench": ("amortes.cli.train_bench:bench", "Speed of a training step."),
    "curves": ("amortes.cli.train_curves:curves", "A figure of the learning curves of runs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def train() -> None:
    """Train networks: first the base, which predicts, then alpha, which knows gains.

    Kernel networks compute their gains: the base is all they learn.

    \b
    Examples:
      amortes train base --recipe kernel --prior paper --run runs/k1
      amortes export runs/k1 -o kernel-paper.safetensors
      amortes train base --recipe transformer --prior paper --run runs/t1
      amortes train alpha --base runs/t1 --run runs/t1-alpha
      amortes export runs/t1-alpha -o transformer-paper.safetensors

    A run can be stopped at any time (Ctrl-C, SIGTERM, --hours); the same command goes on with it,
    exactly as if it had never stopped. Its folder holds metrics.jsonl with everything measured.

    \b
    Recipes:
      kernel         exact Gaussian processes, learned hyperparameters; hours on one core
      transformer    the paper's architecture, sized for a CPU
      paper          the paper's network and budget, 100 million datasets; wants a GPU

    \b
    Several processes, which share every batch and take the same steps as one would:
      torchrun --nproc-per-node 2 --no-python -- amortes train base --threads 1 --run runs/k2
    """
