"""`amortes bench latency`: how long a suggestion takes."""

import dataclasses
import json
import os
from functools import partial
from pathlib import Path

import click

from amortes.bench.latency import (
    FULLY_BAYESIAN,
    LOGEI,
    OPTUNA,
    OURS,
    Datasets,
    LatencyRow,
    Start,
    compare,
    draw,
    measure_start,
    run_on,
)
from amortes.bench.problems.registry import make_problem
from amortes.cli.console import (
    ERR,
    EXIT_FAILED_CHECK,
    NATURAL,
    OUT,
    POSITIVE,
    counting,
    format_value,
    json_option,
    option,
    show_rows,
)
from amortes.cli.parsing import parse_sizes
from amortes.cli.weights import Weights
from amortes.pretrained import as_network

# What amortes aims at.
AT, MOST_MS = 50, 25.0
FASTER = {LOGEI: 12.0, OPTUNA: 3.0, FULLY_BAYESIAN: 100.0}
MOST_IMPORT_SECONDS, MOST_PEAK_MIB = 3.0, 1024.0

BUSY = 0.5  # processes that want to run, above which somebody else is at work


@click.command()
@click.argument("weights", required=False, type=Weights())
@option("-d", "--dims", "d", type=POSITIVE, default=6, help="Number of dimensions.")
@option("--points", callback=parse_sizes, default="20,50,100,200", metavar="N,N,...",
        help="Numbers of observed points.")  # fmt: skip
@option("--problem", metavar="NAME",
        help="Use the first results of runs on this benchmark problem, such as "
        "classic-hartmann6, instead of draws from the prior.")  # fmt: skip
@option("--repeats", type=POSITIVE, default=9, help="Datasets per size; times are medians.")
@option("--fully-bayesian", is_flag=True,
        help="Also time JES with MCMC over hyperparameters; takes minutes per size.")  # fmt: skip
@option("--seed", type=NATURAL, default=0, help="Which datasets.")
@option("--check", is_flag=True, help="Exit with code 1 if a target is missed.")
@json_option
def latency(
    weights: Path | None,
    d: int,
    points: tuple[int, ...],
    problem: str | None,
    repeats: int,
    fully_bayesian: bool,
    seed: int,
    check: bool,
    as_json: bool,
) -> None:
    """Time one suggestion after new data, on one thread of this machine.

    amortes is timed as `Optimizer.ask` with WEIGHTS, a file or a name from `amortes info` (by
    default the first). BoTorch fits a MAP Gaussian process and maximises LogEI or GIBBON with
    optimize_acqf (128 raw samples, 10 restarts). Optuna is timed with its GPSampler. Without
    WEIGHTS, the command also measures, in a fresh process, how long it takes to import amortes and
    load the network, and the peak memory.

    \b
    Examples:
      amortes bench latency
      amortes bench latency --problem classic-hartmann6 --points 20,50
      amortes bench latency kernel-paper --points 50 --repeats 21 --check
      amortes bench latency --fully-bayesian --json > latency.json
    """
    if (load := os.getloadavg()[0]) > BUSY:
        ERR.print(f"[yellow]The machine is busy (load {load:.1f}): times will be too long.[/]")
    network = as_network(weights, gains=True)
    datasets: Datasets = partial(draw, network, d, count=repeats + 1, seed=seed)
    if problem is not None:
        made = make_problem(problem)
        d, datasets = made.d, run_on(network, made, max(points), repeats + 1, seed)
    start = measure_start(d, max(points)) if weights is None else None
    rows = []
    with counting("rows", "measuring", len(points) * (6 if fully_bayesian else 4)) as update:
        for row in compare(
            network, datasets, d=d, points=points, seed=seed, fully_bayesian=fully_bayesian
        ):
            rows.append(row)
            update(advance=1, note=f"n={row.n}")
    missed = list(misses(rows, start))
    tables = [dataclasses.asdict(row) for row in rows]
    if as_json:
        about = None if start is None else dataclasses.asdict(start)
        click.echo(json.dumps({"d": d, "rows": tables, "start": about, "missed": missed}, indent=2))
    else:
        show_rows(tables, as_json=False, title=f"One suggestion after new data, d = {d}")
        if start is not None:
            OUT.print(
                f"import and load: {format_value(start.import_seconds)} s, "
                f"peak memory: {format_value(start.peak_mib)} MiB"
            )
        for line in missed:
            ERR.print(f"[yellow]Target missed:[/] {line}")
    if check and missed:
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)


def misses(rows: list[LatencyRow], start: Start | None) -> list[str]:
    """The targets that these measurements miss, as sentences."""
    missed = []
    for row in rows:
        if row.method == OURS and row.n == AT and row.ms > MOST_MS:
            missed.append(f"{row.ms:.0f} ms at n = {AT}, wanted at most {MOST_MS:.0f}")
        if row.method in FASTER and row.times_ours < FASTER[row.method]:
            missed.append(
                f"{row.times_ours:.1f} times faster than {row.method} at n = {row.n}, "
                f"wanted {FASTER[row.method]:.0f}"
            )
    if start is not None and start.import_seconds > MOST_IMPORT_SECONDS:
        missed.append(f"import takes {start.import_seconds:.1f} s, wanted {MOST_IMPORT_SECONDS}")
    if start is not None and start.peak_mib > MOST_PEAK_MIB:
        missed.append(f"peak memory is {start.peak_mib:.0f} MiB, wanted {MOST_PEAK_MIB:.0f}")
    return missed
