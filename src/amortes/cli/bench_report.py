"""`amortes bench report`: figures, tables and a page from the results of a sweep."""

from pathlib import Path

import click

from amortes.cli.console import OUT

NAMES = (
    "regret",
    "accuracy",
    "hpob",
    "real",
    "wins",
    "ranks",
    "standings",
    "runtime",
    "noise",
    "weights",
    "traces",
    "coverage",
)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write.  [default: the folder `report` beside the results]",
)
@click.option("--only", type=click.Choice(NAMES), help="Draw this section only, without the page.")
@click.option(
    "--anchors",
    type=FILE,
    help="Published curves to draw beside ours.  [default: those of the α-PFN paper]",
)
@click.option("--no-anchors", is_flag=True, help="Draw no published curves.")
@click.option("--traces", type=FILE, help="A trace ablation as JSON: problem, method, curve.")
def report(
    results: Path,
    out: Path | None,
    only: str | None,
    anchors: Path | None,
    no_anchors: bool,
    traces: Path | None,
) -> None:
    """Make a report from RESULTS, the folder (or results.csv) that `amortes bench run` wrote.

    Writes index.html, which needs no other file and no network, figures as PNG and SVG, their
    numbers as CSV, and tables as Markdown. Works on unfinished sweeps and says what is missing.

    \b
    Examples:
      amortes bench report runs/sweep
      amortes bench report runs/sweep --only regret --out out/regret
      amortes bench report runs/sweep --traces ablation.json
    """
    from amortes.bench.report.published import Published, load_published
    from amortes.bench.report.results import load_results
    from amortes.bench.report.study import Study, load_traces
    from amortes.bench.report.write import write_report

    if anchors and no_anchors:
        raise click.UsageError("--anchors and --no-anchors exclude each other.")
    study = Study(
        load_results(results),
        Published() if no_anchors else load_published(anchors),
        load_traces(traces) if traces else {},
    )
    folder = out or (results if results.is_dir() else results.parent) / "report"
    written = write_report(study, folder, only)
    if only:
        for path in written:
            OUT.print(f"Wrote {path}", markup=False, soft_wrap=True)
        return
    OUT.print(f"Wrote {written[0]} and {len(written) - 1} figures and tables", markup=False,
              soft_wrap=True)  # fmt: skip
