"""`amortes prior`: the source of training tasks."""

import click

from amortes.cli.lazy import LazyGroup

COMMANDS = {
    "show": ("amortes.cli.prior_show:show", "A figure of paths, their maxima and a trace."),
    "bench": ("amortes.cli.prior_search:bench", "Speed and precision of the maximisers."),
    "ensemble": ("amortes.cli.prior_search:ensemble", "Build the paper's ensemble of maximisers."),
    "generate": ("amortes.cli.prior_corpus:generate", "Write maximised paths to disk."),
    "verify": ("amortes.cli.prior_corpus:verify", "Check a corpus, shard by shard."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
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
