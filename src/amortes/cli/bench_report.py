"""`amortes bench report`, `pack` and `traces`: from the results of sweeps to a page or a file."""

from pathlib import Path

import click

from amortes.cli.console import FILE, FOLDER, OUT, PATH, option
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
        from amortes.bench.report.curves import load_published
        from amortes.bench.report.load import load_results
        from amortes.bench.report.parts import Study
        from amortes.bench.report.write import write_report

    study = Study(
        load_results(*results),
        load_published()[: 0 if no_anchors else None],
        traces=load_results(traces) if traces else None,
        timed=load_results(timed) if timed else None,
    )
    folder = out or (results[0] if results[0].is_dir() else results[0].parent) / "report"
    written = write_report(study, folder, only, figure)
    lines = [f"Wrote {path}" for path in written]
    if only is None and figure is None:
        lines = [f"{lines[0]} and {len(written) - 1} figures and tables"]
    for line in lines:
        OUT.print(line, markup=False, soft_wrap=True)


@click.command()
@click.argument("results", nargs=-1, required=True, type=PATH)
@option("--output", "-o", type=FILE, default=Path("results.csv.gz"), help="File to write.")
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
        from amortes.bench.report.load import pack as write

    _say(output, f"{write(results, output)} runs")


@click.command()
@click.argument("results", nargs=-1, required=True, type=PATH)
@option("--output", "-o", type=FILE, default=Path("traces.npz"), help="File to write.")
def traces(results: tuple[Path, ...], output: Path) -> None:
    """Extract the points and values of RESULTS, folders written by `amortes bench run`.

    They go into one file, for `amortes evaluate prior --traces`.

    \b
    Example:
      amortes bench run --suite real --methods optuna-tpe,random --seeds 0 --iterations 60 \\
          --out out/traces
      amortes bench traces out/traces -o traces.npz
    """
    from amortes.bench.prior_scores import traces_of, write_traces

    found = traces_of(results)
    write_traces(output, found)
    _say(output, f"{len(found)} traces")


def _say(output: Path, what: str) -> None:
    size = output.stat().st_size / 1e3
    OUT.print(f"Wrote {output}: {what}, {size:.0f} kB", markup=False, soft_wrap=True)
