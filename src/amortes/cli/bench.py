"""`amortes bench`: how good and how fast the optimiser is, beside others."""

import click

from amortes.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("amortes.cli.bench_run:run", "Methods on problems; a table of results."),
    "report": ("amortes.cli.bench_report:report", "Figures, tables and a page from results."),
    "pack": ("amortes.cli.bench_pack:pack", "Results in one small file."),
    "traces": ("amortes.cli.bench_traces:traces", "What runs observed, for `evaluate prior`."),
    "latency": ("amortes.cli.bench_latency:latency", "Time per suggestion, and BoTorch's."),
    "search": ("amortes.cli.bench_search:search", "Our search for the best point, and BoTorch's."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def bench() -> None:
    """Compare methods on problems, and time them on this machine.

    \b
    Examples:
      amortes bench run --suite mini --out out/mini        a miniature of the study
      amortes bench report out/mini                        its figures, tables and web page
      amortes bench latency                                time per ask, beside BoTorch
      amortes bench search                                 our search, beside optimize_acqf
    """
