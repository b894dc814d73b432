"""`amortes bench run`: methods on problems, many times."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amortes.cli.console import (
    FOLDER,
    POSITIVE,
    json_option,
    option,
    parse_names,
    parse_ranges,
    show_rows,
)
from amortes.cli.sweep_options import show_failures, sweep_options, sweep_progress

if TYPE_CHECKING:
    from amortes.bench.results import PlannedRun
    from amortes.engines import Engine

SUITES = [
    *("synthetic", "noise", "lcbench", "hpob", "sklearn", "real", "wide"),
    *("mini", "paper", "runtime"),
]


@click.command()
@option(
    "--suite", type=click.Choice(SUITES), help="A named set of problems, with seeds and iterations."
)
@option("--problems", callback=parse_names, metavar="P,P,...",
        help="Names or patterns of problems, such as branin or hpob-5971-*; with --suite, "
             "only those in it.")  # fmt: skip
@option("--methods", callback=parse_names, metavar="M,M,...",
        help="Optimisers, such as "
             "jes,jes@kernel-paper,logei,map-logei,fb-jes,optuna-tpe,random.  "
             "[default: those of the suite]")  # fmt: skip
@option(
    "--seeds", callback=parse_ranges, show_default="those of the suite", help="Seeds, such as 0-9."
)
@option("--iterations", type=POSITIVE, show_default="those of the suite",
        help="Observations per run, including the d initial ones.")  # fmt: skip
@option("--out", type=FOLDER, required=True, help="Folder for the results.")
@sweep_options
@json_option
def run(
    suite: str | None,
    problems: tuple[str, ...],
    out: Path,
    engine: "Engine",
    retry_failed: bool,
    as_json: bool,
    **which: Any,
) -> None:
    """Run optimisers on problems, and write one row per observation to OUT/results.csv.

    You can stop it at any time, or even kill it. The same command keeps finished runs and does what
    is missing. If a run fails, its traceback goes to OUT/failures, the others continue, and the
    exit code is 1. Each run uses one thread. If the weights of a method have changed since some of
    its runs were made, the command stops instead of mixing old and new runs.

    \b
    Examples:
      amortes bench run --suite mini --out out/mini
      amortes bench run --suite synthetic --methods jes,mes,logei --seeds 0-29 --out out/synthetic
      amortes bench run --problems branin,hartmann6 --methods fb-jes --seeds 0-2 \\
          --iterations 50 --out out/fb
      amortes bench run --suite real --methods jes,logei,botorch,optuna-gp,hebo --seeds 0-4 \\
          --iterations 60 --out out/real
      amortes bench run --suite paper --out out/paper --engine ray --ray-address auto
    """
    from amortes.bench.suites import plan
    from amortes.bench.sweep import sweep

    if suite is None and not problems:
        raise click.UsageError("Nothing to run: give --suite or --problems.")
    runs = plan(suite, problems=problems, **which)
    _check(runs)
    with sweep_progress() as report:
        summary = sweep(out, runs, engine=engine, retry_failed=retry_failed, progress=report)
    row = {
        "runs": len(runs),
        "finished": summary.finished,
        "made": summary.made,
        "failed": len(summary.failures),
        "minutes": round(summary.seconds / 60, 2),
        "results": str(out / "results.csv"),
    }
    show_rows([row], as_json=as_json)
    show_failures(summary.failures)


def _check(runs: "list[PlannedRun]") -> None:
    """Find before the first run what would make runs fail.

    Unknown methods, missing weights, data and packages, fewer iterations than initial points.
    """
    from amortes.bench.problems.registry import make_problem
    from amortes.bench.protocol import weights_digest
    from amortes.bench.sweep import named_method
    from amortes.errors import ConfigError

    for method in dict.fromkeys(run.method for run in runs):
        weights_digest(named_method(method))
    # The shortest run on each kind of problem.
    shortest = {_kind(run.problem): run for run in sorted(runs, key=lambda run: -run.iterations)}
    for run in shortest.values():
        d = make_problem(run.problem).d
        if run.iterations < d:
            raise ConfigError(
                f"iterations: {run.problem} has {d} initial points, which count too; "
                f"{run.iterations} are too few."
            )


def _kind(problem: str) -> str:
    """Problems of a kind have the same d: tasks of LCBench, of an HPO-B space, and large tables.

    All others are kinds of their own.
    """
    if problem.startswith(("hpobench-", "hpolib-")):
        return problem.partition("-")[0]
    return problem.rpartition("-")[0] if problem.startswith(("lcbench-", "hpob-")) else problem
