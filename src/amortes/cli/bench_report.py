"""`amortes bench report`: figures, tables and a page from the results of a sweep."""

from pathlib import Path

import click

from amortes.cli.console import FOLDER, OUT, PATH
from amortes.errors import needs_extra


@click.command()
@click.argument("results", nargs=-1, required=True, type=PATH)
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the report.  [default: `report` next to the first results]",
)
@click.option("--only", metavar="SECTION", help="Write only this section, without the page.")
@click.option("--figure", metavar="NAME", help="Write only this figure and its numbers.")
@click.option("--no-anchors", is_flag=True, help="Leave out the curves of the α-PFN paper.")
@click.option(
    "--traces",
    type=PATH,
    help="Results of networks trained on different traces, for the trace ablation.",
)
@click.option(
    "--timed",
    type=PATH,
    help="Results to take runtimes from, made on an idle machine.  [default: RESULTS]",
)
def report(
    results: tuple[Path, ...],
    out: Path | None,
    only: str | None,
    figure: str | None,
    no_anchors: bool,
    traces: Path | None,
    timed: Path | None,
) -> None:
    """Make a report from RESULTS: folders written by `amortes bench run`, or packed files.

    It consists of index.html, which needs no other file and no network, figures as PNG and SVG,
    their numbers as CSV, and tables as Markdown. The results may be unfinished; the report says
    what is missing. If several folders contain the same run (problem, method and seed), the last
    one counts. To list all sections or figures, give a name that does not exist.

    \b
    Examples:
      amortes bench report runs/sweep
      amortes bench report runs/sweep --only regret --out out/regret
      amortes bench report runs/sweep --figure regret-gp --no-anchors
      amortes bench report runs/ours runs/baselines --timed runs/runtime --traces runs/traces
    """
    with needs_extra("bench", "Reports need pandas and Jinja2"):
        from amortes.bench.report.curves import NO_CURVES
        from amortes.bench.report.parts import Study
        from amortes.bench.report.published import load_published
        from amortes.bench.report.results import load_results
        from amortes.bench.report.write import write_figure, write_report, write_section

    study = Study(
        load_results(*results),
        NO_CURVES if no_anchors else load_published(),
        traces=load_results(traces) if traces else None,
        timed=load_results(timed) if timed else None,
    )
    folder = out or (results[0] if results[0].is_dir() else results[0].parent) / "report"
    if only is None and figure is None:
        written = write_report(study, folder)
        lines = [f"Wrote {written[0]} and {len(written) - 1} figures and tables"]
    else:
        written = [
            *(write_section(study, folder, only) if only else ()),
            *(write_figure(study, folder, figure) if figure else ()),
        ]
        lines = [f"Wrote {path}" for path in written]
    for line in lines:
        OUT.print(line, markup=False, soft_wrap=True)
