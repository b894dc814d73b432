"""`amortes bench pack`: results in one small file."""

from pathlib import Path

import click

from amortes.cli.console import OUT


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("results.csv.gz"),
    show_default=True,
    help="File to write.",
)
def pack(results: tuple[Path, ...], output: Path) -> None:
    """Put RESULTS, folders that `amortes bench run` wrote, into one small file.

    It has no points (x, y), but all that reports are made of: `amortes bench report` reads it like
    the folders. Of a run (problem, method, seed) that several have, that of the last one counts.

    \b
    Example:
      amortes bench pack out/ours out/baselines -o results.csv.gz
    """
    from amortes.bench.pack import pack as write

    count = write(results, output)
    size = output.stat().st_size / 1e3
    OUT.print(f"Wrote {output}: {count} runs, {size:.0f} kB", markup=False, soft_wrap=True)
