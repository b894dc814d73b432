"""`amortes lab`: experiments on a local web page."""

from pathlib import Path

import click

from amortes.cli.console import ERR, FOLDER, OUT, option
from amortes.errors import needs_extra
from amortes.files import make_folder


@click.command()
@click.argument("folder", type=FOLDER, default=Path("."))
@option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on.  [default: the first free one from 8765]",
)
@option("--host", default="127.0.0.1", help="Address to listen on.")
@option("--no-browser", is_flag=True, help="Print the address without opening it in a browser.")
def lab(folder: Path, port: int | None, host: str, no_browser: bool) -> None:
    """Run experiments by hand on a local web page, or watch the runs of programs.

    FOLDER (by default the current one) holds the studies, as JSON files. `Optimizer.load`,
    `minimize(..., state=...)` and `amortes optimize` read and write the same files. Every change is
    saved immediately, so you can stop the lab at any time and start it again.

    \b
    Examples:
      amortes lab                        open the studies in the current folder
      amortes lab runs --port 8000       watch `minimize(..., state="runs/tune.json")`
      AMORTES_LAB_TOKEN=... amortes lab  use the same token every time, for instruments

    Only this machine can reach the page, and only with the token in its address.
    """
    with needs_extra("lab", "`amortes lab` needs FastAPI, Jinja2 and Uvicorn"):
        from amortes.lab.serve import LOOPBACK, serve

    make_folder(folder)
    if host not in LOOPBACK:
        ERR.print(
            "[yellow]Anyone on the network who has the address can open this page, and the "
            "connection is not encrypted.[/]"
        )

    def say(link: str) -> None:
        ERR.print(f"The lab shows {folder.resolve()}. Press Ctrl-C to stop it.", highlight=False)
        OUT.print(link, highlight=False, soft_wrap=True)

    serve(folder, host=host, port=port, browser=not no_browser, say=say)
