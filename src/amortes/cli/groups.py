"""The groups of commands: `amortes bench`, `evaluate`, `prior` and `train`.

Commands are imported when they are called: `--help` and shell completion do not wait for torch.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A click group whose commands are given as {name: ("module:attribute", one line of help)}.

    Modules are those of this package.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy
        for name, (_, line) in lazy.items():
            self.add_command(click.Command(name, short_help=line))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all subcommands, in the order given."""
        return list(self.lazy)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the command itself instead of its line of help."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:  # it is while a shell completes a name that does not exist
            module, attribute = self.lazy[name][0].split(":")
            command = getattr(importlib.import_module(f"amortes.cli.{module}"), attribute)
        return name, command, rest


BENCH = {
    "run": ("bench_run:run", "Run optimisers on problems."),
    "report": ("bench_report:report", "Make figures, tables and a web page of results."),
    "pack": ("bench_report:pack", "Pack results into one small file."),
    "traces": ("bench_report:traces", "Extract traces, for `amortes evaluate prior`."),
    "latency": ("bench_latency:latency", "Time a suggestion; compare with BoTorch, Optuna."),
    "search": ("bench_latency:search", "Compare the acquisition search with BoTorch's."),
}


@click.group(cls=LazyGroup, lazy=BENCH)
def bench() -> None:
    """Benchmark optimisers on problems, and time them on this machine.

    \b
    Examples:
      amortes bench run --suite mini --out out/mini    a miniature benchmark
      amortes bench report out/mini                    its figures, tables and web page
      amortes bench latency                            seconds per suggestion
      amortes bench search                             the search, next to BoTorch's
    """


EVALUATE = {
    "base": ("evaluate:base", "Score predictions against a fully Bayesian GP."),
    "alpha": ("evaluate:alpha", "Score information gains against brute force."),
    "figure": ("evaluate:figure", "Draw predictions and gains in one dimension."),
    "prior": ("evaluate_bo:prior", "Score priors on real optimisation runs."),
    "bo": ("evaluate_bo:bo", "Optimise functions drawn from the prior."),
}


@click.group(cls=LazyGroup, lazy=EVALUATE)
def evaluate() -> None:
    """Score a network (a file, or a name from `amortes info`) against slow, exact references.

    \b
    Examples:
      amortes evaluate base kernel-real         predictions, against a fully Bayesian GP
      amortes evaluate alpha mine.safetensors   information gains, against brute force and BoTorch
      amortes evaluate bo mine.safetensors      optimise functions drawn from its prior
      amortes evaluate prior kernel-real mine.safetensors    both on real optimisation runs
      amortes evaluate figure mine.safetensors -o out/figure.png

    The reference results for the priors paper and robust come with the package (for alpha: in 1-D
    and 2-D). Others are computed when first needed, which takes minutes, and cached.
    """


PRIOR = {
    "show": ("prior_corpus:show", "Draw functions from a prior."),
    "bench": ("prior_search:bench", "Measure speed and precision of the maximisers."),
    "ensemble": ("prior_search:ensemble", "Build the paper's ensemble of maximisers."),
    "generate": ("prior_corpus:generate", "Write functions and their maxima to disk."),
    "verify": ("prior_corpus:verify", "Check what `generate` wrote."),
}


@click.group(cls=LazyGroup, lazy=PRIOR)
def prior() -> None:
    """Look at the priors that networks learn from, and store draws from them.

    Networks learn from functions (sample paths) drawn from a fully Bayesian Gaussian-process prior.
    A search finds the maximum of each.

    \b
    Priors:
      real        robust, with rough and warped functions as in real problems (default network)
      robust      more noise than paper, up to 16 dimensions
      paper       the paper's, up to 6 dimensions
      paper-1d    one dimension, fixed hyperparameters

    \b
    Examples:
      amortes prior show --prior real --seed 3 --output out/prior.png
      amortes prior bench --dims 1,6,16 --paths 500
      amortes prior generate corpora/paper --paths 1000000 --dims 1-6
      amortes prior verify corpora/paper
    """


TRAIN = {
    "base": ("train:base", "Train the base stage: hyperparameters or predictions."),
    "alpha": ("train:alpha", "Train the alpha stage: information gains."),
    "bench": ("train:bench", "Measure the speed of a training step."),
    "curves": ("train:curves", "Draw learning curves."),
}


@click.group(cls=LazyGroup, lazy=TRAIN)
def train() -> None:
    """Train a network.

    There are two stages. In the base, a kernel network learns to propose hyperparameters, and a
    transformer to predict. Then alpha learns the information gains (PES, MES and JES). A kernel
    network works without it, too, but slower: it takes draws of the optimum for each dataset.

    \b
    Examples:
      amortes train base --recipe kernel --prior paper --run runs/k1
      amortes export runs/k1 -o kernel-paper.safetensors
      amortes train base --recipe transformer --prior paper --run runs/t1
      amortes train alpha --base runs/t1 --run runs/t1-alpha
      amortes export runs/t1-alpha -o transformer-paper.safetensors

    You can stop a run at any time (Ctrl-C, SIGTERM, --hours). The same command continues it as if
    it had never stopped. The run folder contains metrics.jsonl with everything that was measured.

    \b
    Recipes:
      kernel         exact Gaussian processes, learned hyperparameters; hours on one core
      transformer    the paper's architecture, sized for a CPU
      paper          the paper's network and budget, 100 million datasets; meant for a GPU

    \b
    To train with several processes, which share every batch and take the same steps as one:
      torchrun --nproc-per-node 2 --no-python -- amortes train base --threads 1 --run runs/k2
    """
