"""`amortes bench pack` and `amortes bench traces`: what runs found, in one file."""

from collections.abc import Callable
from pathlib import Path

import click

from amortes.cli.console import FILE, OUT, PATH, Command, option, options
from amortes.errors import needs_extra


def _files(output: str) -> Callable[[Command], Command]:
    """From several folders to one file."""
    return options(
        click.argument("results", nargs=-1, required=True, type=PATH),
        option("--output", "-o", type=FILE, default=Path(output), help="File to write."),
    )


@click.command()
@_files("results.csv.gz")
def pack(results: tuple[Path, ...], output: Path) -> None:
    """Pack RESULTS, folders written by `amortes bench run`, into one small file.

    The file leaves out the points (x, y) but has all that a report needs: `amortes bench report`
    reads it like a folder. If several folders contain the same run (problem, method and seed), the
    last one counts.

    \b
    Example:
      amortes bench pack out/ours out/baselines -o results.csv.gz
    """
    with needs_extra("bench", "Packing results needs pandas"):
        from amortes.bench.pack import pack as write

    _say(output, f"{write(results, output)} runs")


@click.command()
@_files("traces.npz")
def traces(results: tuple[Path, ...], output: Path) -> None:
    """Extract the points and values of RESULTS, folders written by `amortes bench run`.

    They go into one file, for `amortes evaluate prior --traces`.

    \b
    Example:
      amortes bench run --suite real --methods optuna-tpe,random --seeds 0 --iterations 60 \\
          --out out/traces
      amortes bench traces out/traces -o traces.npz
    """
    from amortes.bench.traces import traces_of, write_traces

    found = traces_of(results)
    write_traces(output, found)
    _say(output, f"{len(found)} traces")


def _say(output: Path, what: str) -> None:
    size = output.stat().st_size / 1e3
    OUT.print(f"Wrote {output}: {what}, {size:.0f} kB", markup=False, soft_wrap=True)
