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

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all subcommands."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one subcommand."""
        if cmd_name not in self.lazy:
            return None
        module, attribute = self.lazy[cmd_name][0].split(":")
        command = getattr(importlib.import_module(f"amortes.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.lazy.items()])


BENCH = {
    "run": ("bench_run:run", "Methods on problems; a table of results."),
    "report": ("bench_report:report", "Figures, tables and a page from results."),
    "pack": ("bench_files:pack", "Results in one small file."),
    "traces": ("bench_files:traces", "What runs observed, for `evaluate prior`."),
    "latency": ("bench_latency:latency", "Time per suggestion, and BoTorch's."),
    "search": ("bench_search:search", "Our search for the best point, and BoTorch's."),
}


@click.group(cls=LazyGroup, lazy=BENCH)
def bench() -> None:
    """Compare methods on problems, and time them on this machine.

    \b
    Examples:
      amortes bench run --suite mini --out out/mini        a miniature of the study
      amortes bench report out/mini                        its figures, tables and web page
      amortes bench latency                                time per ask, next to BoTorch
      amortes bench search                                 our search, next to optimize_acqf
    """


EVALUATE = {
    "base": ("evaluate:base", "Predictions against the fully Bayesian GP."),
    "alpha": ("evaluate:alpha", "Acquisitions against brute force and BoTorch."),
    "figure": ("evaluate:figure", "The paper's figure of both in 1-D."),
    "prior": ("evaluate_prior:prior", "Priors on traces of real optimisation runs."),
    "bo": ("evaluate_bo:bo", "Optimisation of functions of the prior."),
}


@click.group(cls=LazyGroup, lazy=EVALUATE)
def evaluate() -> None:
    """Compare weights (a file, or a name of `amortes info`) with independent oracles.

    \b
    Examples:
      amortes evaluate base kernel-real              predictions against the fully Bayesian GP
      amortes evaluate alpha kernel.safetensors      acquisitions against brute force, BoTorch
      amortes evaluate figure kernel.safetensors -o out/figure.png
      amortes evaluate bo kernel.safetensors         optimisation of functions of its prior
      amortes evaluate prior kernel-real kernel.safetensors        real runs, next to a baseline

    What the oracles found for the priors paper and robust is part of the package (for alpha: in
    1-D and 2-D); the rest is computed when first needed (minutes) and kept in a cache.
    """


PRIOR = {
    "show": ("prior_show:show", "A figure of paths, their maxima and a trace."),
    "bench": ("prior_search:bench", "Speed and precision of the maximisers."),
    "ensemble": ("prior_search:ensemble", "Build the paper's ensemble of maximisers."),
    "generate": ("prior_corpus:generate", "Write maximised paths to disk."),
    "verify": ("prior_corpus:verify", "Check a corpus, shard by shard."),
}


@click.group(cls=LazyGroup, lazy=PRIOR)
def prior() -> None:
    """Sample paths, their maxima, and corpora of them.

    Networks learn from functions drawn from a fully Bayesian Gaussian-process prior, whose
    maxima are found by search. Priors: paper (the paper's), paper-1d (fixed hyperparameters),
    robust (more noise, up to 16 dimensions), real (of that also rough and warped functions, for
    real problems: what networks are trained on).

    \b
    Examples:
      amortes prior show --prior real --seed 3 --output out/prior.png
      amortes prior bench --dims 1,6,16 --paths 500
      amortes prior generate corpora/paper --paths 1000000 --dims 1-6
      amortes prior verify corpora/paper
    """


TRAIN = {
    "base": ("train:base", "Predictions, given nothing, x*, f* or both."),
    "alpha": ("train:alpha", "The gains PES, MES and JES."),
    "bench": ("train:bench", "Speed of a training step."),
    "curves": ("train:curves", "A figure of the learning curves of runs."),
}


@click.group(cls=LazyGroup, lazy=TRAIN)
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
