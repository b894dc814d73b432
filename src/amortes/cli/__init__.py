"""The `amortes` command; each subcommand is a module of this package."""

import signal
import sys

import click

from amortes import __version__
from amortes.cli.console import ERR, EXIT_ERROR, EXIT_INTERRUPTED
from amortes.cli.groups import LazyGroup
from amortes.errors import AmortesError

COMMANDS = {
    "optimize": ("optimize:optimize", "Tune the arguments of any program."),
    "lab": ("lab:lab", "Run experiments by hand, on a local web page."),
    "demo": ("demo:demo", "Compare amortes with Optuna and random search."),
    "info": ("weights:info", "Show the networks that come with amortes."),
    "prior": ("groups:prior", "Look at the priors that networks learn from."),
    "train": ("groups:train", "Train a network."),
    "export": ("weights:export", "Write a trained network to one file."),
    "bench": ("groups:bench", "Benchmark optimisers, and time them."),
    "evaluate": ("groups:evaluate", "Score a network against exact references."),
}
GO_ON = (
    *("optimize", "lab", "prior generate", "train base", "train alpha"),
    *("bench run", "evaluate base", "evaluate alpha", "evaluate bo"),
)
"""Commands that keep what they have done when they are interrupted."""


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def app() -> None:
    """Bayesian optimisation for expensive functions.

    \b
    Examples, to tune something:
      amortes optimize --space space.toml -- ./train.sh {lr} {layers}
      amortes lab my-experiments             run experiments by hand, on a local web page
      amortes demo                           compare amortes with Optuna and random search

    \b
    Examples, to train a network of your own:
      amortes prior show                     draw functions that networks learn from
      amortes train base --run runs/mine     train; Ctrl-C stops, the same command continues
      amortes export runs/mine -o mine.safetensors
      amortes evaluate base mine.safetensors

    `amortes COMMAND --help` explains a command, with examples.

    Exit codes: 0 success, 1 a check or a run failed, 2 wrong usage, 3 an error (the message says
    what to do), 130 interrupted.
    """


def main() -> None:
    """Entry point: run the command, turn known errors into one clear line and an exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(app(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        goes_on = " ".join(sys.argv[1:3]).startswith(GO_ON)
        ERR.print("[yellow]Interrupted.[/]" + goes_on * " Run the same command again to continue.")
        sys.exit(EXIT_INTERRUPTED)
    except (AmortesError, OSError) as error:
        ERR.print("[red]Error:[/]", end=" ")
        ERR.print(str(error), markup=False, soft_wrap=True)
        sys.exit(EXIT_ERROR)
