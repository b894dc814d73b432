"""`amortes evaluate bo`: weights as an optimiser, on functions of their own prior."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from amortes.cli.console import ERR, FOLDER, POSITIVE, json_option, option, show_rows
from amortes.cli.parsing import parse_names, parse_sizes
from amortes.cli.sweep_options import show_failures, sweep_options, sweep_progress
from amortes.cli.weights import Weights

if TYPE_CHECKING:
    from amortes.engines import Engine


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
    engine: "Engine",
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
    from amortes.bench.evaluation import Setting, evaluate_optimisation, other_code, summarise
    from amortes.training.export import load_network

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
