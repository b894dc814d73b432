"""`amortes bench traces`: what runs observed, in one file, to judge priors by."""

from pathlib import Path

import click

from amortes.cli.console import OUT


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("traces.npz"),
    show_default=True,
    help="File to write.",
)
def traces(results: tuple[Path, ...], output: Path) -> None:
    """Put the points and results of RESULTS, folders of `amortes bench run`, into one file.

    For `amortes evaluate prior --traces`.

    \b
    Example:
      amortes bench run --suite real --methods optuna-tpe,random --seeds 0 --iterations 60 \\
          --out out/traces
      amortes bench traces out/traces -o traces.npz
    """
    from amortes.bench.traces import traces_of, write_traces

    found = traces_of(results)
    write_traces(output, found)
    size = output.stat().st_size / 1e3
    OUT.print(f"Wrote {output}: {len(found)} traces, {size:.0f} kB", markup=False, soft_wrap=True)
