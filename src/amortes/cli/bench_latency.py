"""`amortes bench latency` and `search`: how long a suggestion takes, and how good its search is."""

import dataclasses
import json
import os
from functools import partial
from pathlib import Path

import click

from amortes.acquisition.bench import compare as compare_searches
from amortes.acquisition.fitted import SCORES
from amortes.bench.latency import (
    FULLY_BAYESIAN,
    LOGEI,
    OPTUNA,
    OURS,
    Datasets,
    Row,
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
    parse_sizes,
    show_rows,
)
from amortes.cli.weights import Weights
from amortes.nets.base import GAINS
from amortes.pretrained import DEFAULT, as_network

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
    """Time one suggestion after a new result, on one thread of this machine.

    amortes is timed as `Optimizer.ask` with WEIGHTS, a file or a name from `amortes info` (by
    default the first), in a run and from scratch, as after loading one. BoTorch fits a MAP Gaussian
    process and maximises LogEI or GIBBON with optimize_acqf (128 raw samples, 10 restarts). Optuna
    is timed with its GPSampler. Without WEIGHTS, the command also measures, in a fresh process, how
    long it takes to import amortes and load the network, and the peak memory.

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
    with counting("rows", "measuring", len(points) * (7 if fully_bayesian else 5)) as update:
        for row in compare(
            network, datasets, d=d, points=points, seed=seed, fully_bayesian=fully_bayesian
        ):
            rows.append(row)
            update(advance=1, note=f"n={row['n']}")
    missed = list(misses(rows, start))
    if as_json:
        about = None if start is None else dataclasses.asdict(start)
        click.echo(json.dumps({"d": d, "rows": rows, "start": about, "missed": missed}, indent=2))
    else:
        show_rows(rows, as_json=False, title=f"One suggestion after a new result, d = {d}")
        if start is not None:
            OUT.print(
                f"import and load: {format_value(start.import_seconds)} s, "
                f"peak memory: {format_value(start.peak_mib)} MiB"
            )
        for line in missed:
            ERR.print(f"[yellow]Target missed:[/] {line}")
    if check and missed:
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)


def misses(rows: list[Row], start: Start | None) -> list[str]:
    """The targets that these measurements miss, as sentences."""
    missed = []
    for row in rows:
        method, n, ms, times = (row[name] for name in ("method", "n", "ms", "times_ours"))
        if method == OURS and n == AT and ms > MOST_MS:
            missed.append(f"{ms:.0f} ms at n = {AT}, wanted at most {MOST_MS:.0f}")
        if method in FASTER and times < FASTER[method]:
            missed.append(
                f"{times:.1f} times faster than {method} at n = {n}, wanted {FASTER[method]:.0f}"
            )
    if start is not None and start.import_seconds > MOST_IMPORT_SECONDS:
        missed.append(f"import takes {start.import_seconds:.1f} s, wanted {MOST_IMPORT_SECONDS}")
    if start is not None and start.peak_mib > MOST_PEAK_MIB:
        missed.append(f"peak memory is {start.peak_mib:.0f} MiB, wanted {MOST_PEAK_MIB:.0f}")
    return missed


@click.command()
@click.argument("weights", default=DEFAULT, type=Weights())
@option(
    "--score", type=click.Choice(SCORES), default="jes", help="Acquisition function to maximise."
)
@option("--dims", callback=parse_sizes, default="2,6", metavar="D,D,...",
        help="Numbers of dimensions.")  # fmt: skip
@option("--points", callback=parse_sizes, default="20,50", metavar="N,N,...",
        help="Numbers of observed points.")  # fmt: skip
@option("--datasets", type=POSITIVE, default=20, help="Datasets per size.")
@option("--seed", type=NATURAL, default=0, help="Which datasets.")
@json_option
def search(
    weights: Path,
    score: str,
    dims: tuple[int, ...],
    points: tuple[int, ...],
    datasets: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the search for the best acquisition value with BoTorch's optimize_acqf.

    Both maximise the same acquisition function of the network in WEIGHTS (by default the one that
    comes with amortes) on datasets drawn from its prior. optimize_acqf uses 128 raw samples and 10
    restarts. In the column `missed`, 0 is the best value known and 1 that of a random point.

    \b
    Examples:
      amortes bench search --datasets 5
      amortes bench search weights.safetensors --score jes --dims 6 --points 50
    """
    network = as_network(weights, gains=score in GAINS)
    rows = []
    with counting("sizes", "searching", len(dims) * len(points)) as update:
        for d in dims:
            network.prior.check_dim(d)
            for n in points:
                update(note=f"d={d} n={n}")
                rows += compare_searches(
                    network, d=d, n=n, score=score, datasets=datasets, seed=seed
                )
                update(advance=1)
    table = [dataclasses.asdict(row) for row in rows]
    if not as_json:  # what is the same in all rows goes into the title
        table = [{k: v for k, v in row.items() if k not in ("score", "datasets")} for row in table]
    show_rows(table, as_json=as_json, title=f"{score}, {datasets} datasets of each size")
