"""`amortes lab`: experiments on a local web page."""

from pathlib import Path

import click

from amortes.cli.console import ERR, FOLDER, OUT, option
from amortes.errors import FileError, MissingExtraError


@click.command()
@click.argument("folder", type=FOLDER, default=Path("."))
@option("--port", type=click.IntRange(0, 65535), help="Default: the first free from 8765 on.")
@option("--host", default="127.0.0.1", help="Address to listen at.")
@option("--no-browser", is_flag=True, help="Print the address, and do not open it.")
def lab(folder: Path, port: int | None, host: str, no_browser: bool) -> None:
    """Run experiments on a local web page, or watch a program that does.

    FOLDER holds the studies, as JSON files that `Optimizer.load`, `minimize(..., state=...)` and
    `amortes optimize` read and write too; by default the current one. Everything is saved at once:
    end it with Ctrl-C, or any other way, and start it again to go on.

    \b
    Examples:
      amortes lab                        studies in the current folder
      amortes lab runs --port 8000       watch `minimize(..., state="runs/tune.json")`
      AMORTES_LAB_TOKEN=... amortes lab  the same key every time, for instruments

    Only this machine can reach the page, and only with the key in its address.
    """
    try:
        from amortes.lab.serve import LOOPBACK, serve
    except ImportError as error:
        raise MissingExtraError(
            f'`amortes lab` needs {error.name or "more packages"}: pip install "amortes[lab]".'
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}.") from None
    if host not in LOOPBACK:
        ERR.print(
            "[yellow]Others on the network can reach this page if they know its address, and can "
            "listen in: it is not encrypted.[/]"
        )

    def say(link: str) -> None:
        ERR.print(f"The lab of {folder.resolve()}; Ctrl-C ends it.", highlight=False)
        OUT.print(link, highlight=False, soft_wrap=True)

    serve(folder, host=host, port=port, browser=not no_browser, say=say)
