"""What commands that run sweeps share: engines, and progress for people and for log files."""

import contextlib
import datetime
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from amortes.cli.console import ERR, EXIT_FAILED_CHECK, POSITIVE, counting, option, options

if TYPE_CHECKING:
    from amortes.bench.sweep import Progress
    from amortes.engines import Engine

SHOWN_FAILURES = 5

_ENGINE = options(
    option(
        "--workers",
        type=POSITIVE,
        show_default="all cores",
        help="Worker processes; with --engine ray and no address, cores.",
    ),
    option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        help="Where to run: processes on this machine, or Ray.",
    ),
    option(
        "--ray-address", help="Address of a Ray cluster; without it, Ray starts on this machine."
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers, --engine and --ray-address to a command, which gets the `engine` they make."""

    @_ENGINE
    @functools.wraps(command)
    def with_engine(
        *args: Any, engine: str, workers: int | None, ray_address: str | None, **others: Any
    ) -> Any:
        return command(*args, engine=_make_engine(engine, workers, ray_address), **others)

    return with_engine


def sweep_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `engine_options` and --retry-failed to a command."""
    retry = option("--retry-failed", is_flag=True, help="Repeat runs that failed.")
    return engine_options(retry(command))


def _make_engine(engine: str, workers: int | None, ray_address: str | None) -> "Engine":
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
    with counting("runs", "running") as update:

        def report(heard: "Progress") -> None:
            update(completed=heard.done, total=heard.total, note=str(heard.run or ""))
            if heard.run is not None and not ERR.is_terminal:
                left = datetime.timedelta(seconds=round(heard.seconds_left or 0.0))
                state = "failed" if heard.failure else "done"
                line = f"{heard.done}/{heard.total} {heard.run}: {state}; {left} left"
                ERR.print(line, markup=False, highlight=False, soft_wrap=True)

        yield report


def show_failures(failures: list[Path]) -> None:
    """Say where tracebacks are and what the first ones end with, and exit; nothing if none are."""
    for path in failures[:SHOWN_FAILURES]:
        last = path.read_text(encoding="utf-8").strip().splitlines()[-1]
        ERR.print(f"[red]Failed:[/] {escape(str(path))}: {escape(last)}", soft_wrap=True)
    if len(failures) > SHOWN_FAILURES:
        ERR.print(f"and {len(failures) - SHOWN_FAILURES} more.")
    if failures:
        ERR.print("To repeat them, run the same command with --retry-failed.")
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)
