"""What commands that run sweeps share: engines, and progress for people and for log files."""

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from amortes.cli.console import ERR, progress
from amortes.cli.parsing import POSITIVE

if TYPE_CHECKING:
    from amortes.bench.sweep import Progress
    from amortes.engines import Engine

SHOWN_FAILURES = 5

_ENGINE = (
    click.option(
        "--workers",
        type=POSITIVE,
        show_default="all cores",
        help="Processes, or with --engine ray and no address, cores.",
    ),
    click.option(
        "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True
    ),
    click.option(
        "--ray-address", help="A running Ray cluster; without it, Ray starts on this machine."
    ),
)
_RETRY = click.option("--retry-failed", is_flag=True, help="Try failed runs again.")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers, --engine and --ray-address, for `make_engine`, to a command."""
    for option in reversed(_ENGINE):
        command = option(command)
    return command


def sweep_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `engine_options` and --retry-failed to a command."""
    return engine_options(_RETRY(command))


def make_engine(engine: str, workers: int | None, ray_address: str | None) -> "Engine":
    """The engine asked for."""
    from amortes.engines import local_engine, ray_engine

    if ray_address and engine != "ray":
        raise click.UsageError("--ray-address needs --engine ray.")
    if engine == "ray":
        return ray_engine(ray_address, workers)
    if workers is None and hasattr(os, "sched_getaffinity"):
        # Containers and batch systems often allow fewer cores than the machine has.
        workers = len(os.sched_getaffinity(0))
    return local_engine(workers or os.cpu_count() or 1)


@contextlib.contextmanager
def sweep_progress() -> "Iterator[Callable[[Progress], None]]":
    """Yields what a sweep reports to: a bar on a terminal, else a line for every run."""
    with progress("runs") as bar:
        task: Any = bar.add_task("running", total=None, note="")

        def report(heard: "Progress") -> None:
            bar.update(task, completed=heard.done, total=heard.total, note=str(heard.run or ""))
            if heard.run is not None and not ERR.is_terminal:
                left = datetime.timedelta(seconds=round(heard.seconds_left or 0.0))
                state = "failed" if heard.failure else "done"
                line = f"{heard.done}/{heard.total} {heard.run}: {state}; {left} left"
                ERR.print(line, markup=False, highlight=False, soft_wrap=True)

        yield report


def show_failures(failures: list[Path]) -> None:
    """Say where the tracebacks are, and what the first ones end with."""
    for path in failures[:SHOWN_FAILURES]:
        last = path.read_text(encoding="utf-8").strip().splitlines()[-1]
        ERR.print(f"[red]Failed:[/] {escape(str(path))}: {escape(last)}", soft_wrap=True)
    if len(failures) > SHOWN_FAILURES:
        ERR.print(f"and {len(failures) - SHOWN_FAILURES} more.")
    if failures:
        ERR.print("Start the same command with --retry-failed to try them again.")
