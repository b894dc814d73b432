"""The `amortes` command; each subcommand is a module of this package."""

import signal
import sys

import click

from amortes import __version__
from amortes.cli.console import ERR, EXIT_ERROR, EXIT_INTERRUPTED
from amortes.cli.groups import LazyGroup
from amortes.errors import AmortesError

COMMANDS = {
    "optimize": ("optimize:optimize", "Find the best arguments of a command."),
    "lab": ("lab:lab", "Run experiments on a local web page."),
    "demo": ("demo:demo", "Noisy Hartmann-6: entropy search, LogEI, random search."),
    "info": ("weights:info", "The trained networks that come with amortes."),
    "prior": ("groups:prior", "Sample paths, their maxima, and corpora of them."),
    "train": ("groups:train", "Train the base or the alpha stage of a network."),
    "export": ("export:export", "Write the weights of a run to one file."),
    "bench": ("groups:bench", "Compare methods on problems, and time them."),
    "evaluate": ("groups:evaluate", "Compare weights with independent oracles."),
}
GO_ON = (
    *("optimize", "lab", "prior generate", "train base", "train alpha"),
    *("bench run", "evaluate base", "evaluate alpha", "evaluate bo"),
)
"""Commands that keep what they have done when they are interrupted."""


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def app() -> None:
    """Bayesian optimisation with learned inference and entropy search.

    \b
    Examples:
      amortes optimize --space space.toml -- ./train.sh {lr} {layers}
      amortes lab                                   experiments on a local web page
      amortes demo                                  a live comparison, and a plot of the regret
      amortes prior show                            a figure of what the networks learn from
      amortes train base --recipe kernel --run runs/k      train; Ctrl-C and repeat to go on
      amortes export runs/k -o k.safetensors        one file, loads without running code
      amortes evaluate base k.safetensors           against the fully Bayesian reference

    Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 an error that is explained,
    130 interrupted. A command that then says so goes on where it was when started again.
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
        ERR.print("[yellow]Interrupted.[/]" + goes_on * " Start the same command again to go on.")
        sys.exit(EXIT_INTERRUPTED)
    except (AmortesError, OSError) as error:
        ERR.print("[red]Error:[/]", end=" ")
        ERR.print(str(error), markup=False, soft_wrap=True)
        sys.exit(EXIT_ERROR)
