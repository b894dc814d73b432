"""`amortes evaluate bo`, on functions of the prior of weights, and `prior`, on real runs."""

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from amortes.cli.console import (
    ERR,
    FILE,
    FOLDER,
    POSITIVE,
    counting,
    json_option,
    option,
    parse_names,
    parse_sizes,
    show_rows,
)
from amortes.cli.sweep_options import show_failures, sweep_options, sweep_progress
from amortes.cli.weights import Weights
from amortes.engines import Engine
from amortes.errors import needs_extra
from amortes.nets.base import Network
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import named_prior
from amortes.training.export import load_network

TITLES = {
    "evidence": "log evidence of the first n, nats per observation",
    "next": "log density of the next 10 observations, nats each",
    "better": "the same of those better than the median told",
}


def _parse_noises(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    """Non-negative numbers from "0.02,0.3"."""
    try:
        noises = tuple(float(part) for part in value.split(","))
    except ValueError:
        noises = (-1.0,)
    if not all(0.0 <= noise < float("inf") for noise in noises):
        raise click.BadParameter(f"{value!r} is not a list of sizes such as 0.02,0.3.", ctx, param)
    return noises


@click.command()
@click.argument("weights", type=Weights())
@option("--dims", callback=parse_sizes, metavar="D,D,...",
        help="Dimensions.  [default: 2, 4, 6, 10, as far as the prior goes]")  # fmt: skip
@option("--noises", callback=_parse_noises, default="0.02,0.3", metavar="S,S,...",
        help="Standard deviations of the noise.")  # fmt: skip
@option("--functions", type=POSITIVE, default=20, help="Functions per dimension and noise.")
@option("--evaluations", type=click.IntRange(min=2), default=60,
        help="Observations of each function, including the d initial ones.")  # fmt: skip
@option("--methods", callback=parse_names, default="pes,mes,jes,logei,map-logei,random",
        metavar="M,M,...",
        help="Methods to run; pes, mes, jes, ei and logei use WEIGHTS.")  # fmt: skip
@option("--cache", type=FOLDER,
        help="Folder for finished runs.  [default: $AMORTES_CACHE or "
             "~/.cache/amortes]")  # fmt: skip
@sweep_options
@json_option
def bo(
    weights: Path,
    cache: Path | None,
    engine: Engine,
    retry_failed: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Optimise functions drawn from the prior of WEIGHTS, and compare with other methods.

    All methods see the same functions, initial points and noise. Finished runs are cached by the
    content of the weights file, so an interrupted command continues, and with more functions or
    methods only the new runs are made.

    \b
    Columns, each over the functions of a row:
      after n             mean of log10 inference regret after n observations ± standard error
      difference          the same at the end minus that of logei, paired by function
      wins                share of functions with less regret at the end than logei; ties count
                          half, and regrets below 1e-4 count as 1e-4

    In the rows over all noises, a function counts once, as its average. JSON also contains the
    number of runs and the seconds per step: conditioning, search and recommendation.

    \b
    Examples:
      amortes evaluate bo mine.safetensors
      amortes evaluate bo mine.safetensors --dims 2,6 --functions 5 --methods jes,logei,random
    """
    with needs_extra("bench", "Comparing methods needs pandas"):
        from amortes.bench.evaluation import Setting, evaluate_optimisation, other_code, summarise

    network, _ = load_network(weights)
    setting = Setting(prior=network.prior, weights=weights.resolve(), **chosen)
    with sweep_progress() as report:
        rows, failures = evaluate_optimisation(
            setting, engine=engine, cache=cache, retry_failed=retry_failed, progress=report
        )
    table = summarise(rows, setting)
    show_rows(
        table if as_json else [_for_people(row) for row in table],
        as_json=as_json,
        title=f"{weights.name} on prior {network.prior.name}",
    )
    if others := other_code(rows):
        ERR.print(
            f"[yellow]Of {len(setting.tasks) * len(setting.methods)} runs, "
            f"{sum(others.values())} are of other code than that of now, and might have other "
            "results today:[/] "
            + escape("; ".join(f"{n} of amortes {code}" for code, n in others.items())),
            soft_wrap=True,
        )
    show_failures(failures)


def _for_people(row: dict[str, Any]) -> dict[str, Any]:
    """A row that fits 80 characters: means with their errors, rounded."""
    shown: dict[str, Any] = {name: row[name] for name in ("d", "noise", "method")}
    for name, value in row.items():
        kind, _, n = name.partition("_")
        if kind == "regret":
            shown[f"after_{n}"] = _with_error(value, row[f"error_{n}"])
    shown["difference"] = _with_error(row["difference"], row["error_difference"])
    shown["wins"] = None if row["wins"] is None else round(row["wins"], 3)
    return shown


def _with_error(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.2f}" if error is None else f"{mean:.2f} ±{error:.2f}"


@click.command()
@click.argument("weights", nargs=-1, type=Weights())
@option("--prior", "priors", multiple=True, metavar="NAME",
        help="Score this prior with an untrained kernel network, whose predictions need "
             "no training. May be repeated.")  # fmt: skip
@option("--traces", type=FILE,
        help="File from `amortes bench traces`.  [default: the one that comes with "
             "amortes]")  # fmt: skip
@option("--families", callback=parse_names, metavar="F,F,...",
        help="Families of problems.  [default: all]")  # fmt: skip
@option("--sizes", callback=parse_sizes, default="10,20,40", metavar="N,N,...",
        help="Numbers of observations that the models see.")  # fmt: skip
@option("--plain-baseline", is_flag=True, help="Do not transform results for the baseline.")
@json_option
def prior(
    weights: tuple[Path, ...],
    priors: tuple[str, ...],
    traces: Path | None,
    families: tuple[str, ...],
    sizes: tuple[int, ...],
    plain_baseline: bool,
    as_json: bool,
) -> None:
    """Score how well networks and priors describe the results of real optimisation runs.

    The first of WEIGHTS (or, without WEIGHTS, the first prior) is the baseline, with which all
    others are compared. Cells are differences in nats ± standard error over problems, and the
    share of problems with a positive difference. The rows "all" and "without ...", which leaves one
    family out, weight every family equally.

    \b
    Examples:
      amortes evaluate prior kernel-real mine.safetensors
      amortes evaluate prior --prior robust --prior real --plain-baseline
      amortes evaluate prior --prior robust --prior paper --families classic,lcbench
      amortes evaluate prior kernel-real kernel-paper --json > scores.json
    """
    from amortes.bench.prior_scores import read_traces, score_networks, shipped

    networks: dict[str, Network[Any]] = {path.stem: load_network(path)[0] for path in weights}
    for name in priors:
        untrained = KernelNetwork(KernelConfig(encoder=None), named_prior(name))
        networks[f"prior {name}"] = untrained.eval()
    if len(networks) < 2:
        raise click.UsageError("give at least two networks or priors; the first is the baseline.")
    found = read_traces(traces or shipped())
    there = sorted({trace.family for trace in found})
    if unknown := set(families) - set(there):
        named = ", ".join(sorted(unknown))
        raise click.UsageError(f"No family {named}; there are {', '.join(there)}.")
    found = [trace for trace in found if trace.family in (families or there)]
    with counting("traces", "scoring", len(found) * len(networks)) as update:
        differences = score_networks(
            networks,
            found,
            sizes,
            lambda name, trace: update(advance=1, note=f"{name}, {trace.problem}"),
            plain_baseline=plain_baseline,
        )
    if as_json:
        show_rows(differences, as_json=True)
        return
    baseline, *others = networks
    for name in others:
        for score, title in TITLES.items():
            rows = _table([d for d in differences if (d["network"], d["score"]) == (name, score)])
            if rows:
                show_rows(rows, as_json=False, title=f"{name} - {baseline}: {title}")


def _table(differences: list[dict[str, Any]]) -> list[dict[str, str]]:
    """A row for each family, a column for each n."""
    rows: dict[str, dict[str, str]] = {}
    for d in differences:
        error = "" if d["error"] is None else f" ±{d['error']:.2f}"
        first = {"families": d["families"], "problems": str(d["problems"])}
        row = rows.setdefault(d["families"], first)
        row[f"n = {d['n']}"] = f"{d['mean']:+.2f}{error} ({d['ahead']:.0%})"
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    return [{column: row.get(column, "-") for column in columns} for row in rows.values()]
