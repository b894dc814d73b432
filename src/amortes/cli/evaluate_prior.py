"""`amortes evaluate prior`: networks, and priors, on traces of real optimisation runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amortes.cli.console import FILE, counting, json_option, option, show_rows
from amortes.cli.parsing import parse_sizes
from amortes.cli.weights import Weights

if TYPE_CHECKING:
    from amortes.bench.prior_scores import Difference
    from amortes.nets.base import Network

TITLES = {
    "evidence": "log evidence of the first n, nats per observation",
    "next": "log density of the next 10 observations, nats each",
    "better": "the same of those better than the median told",
}


@click.command()
@click.argument("weights", nargs=-1, type=Weights())
@option("--prior", "priors", multiple=True, metavar="NAME",
        help="Score this prior with an untrained kernel network, whose predictions need "
             "no training. May be repeated.")  # fmt: skip
@option("--traces", type=FILE,
        help="File from `amortes bench traces`.  [default: the one that comes with "
             "amortes]")  # fmt: skip
@option("--families", metavar="F,F,...", help="Families of problems.  [default: all]")
@option("--sizes", callback=parse_sizes, default="10,20,40", metavar="N,N,...",
        help="Numbers of observations that the models see.")  # fmt: skip
@option("--plain-baseline", is_flag=True, help="Do not transform results for the baseline.")
@json_option
def prior(
    weights: tuple[Path, ...],
    priors: tuple[str, ...],
    traces: Path | None,
    families: str | None,
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
    from amortes.bench.prior_scores import score_networks
    from amortes.bench.traces import read_traces, shipped

    networks = _networks(weights, priors)
    if len(networks) < 2:
        raise click.UsageError("give at least two networks or priors; the first is the baseline.")
    found = read_traces(traces or shipped())
    if families is not None:
        wanted = {name.strip() for name in families.split(",")}
        if unknown := wanted - {trace.family for trace in found}:
            there = ", ".join(sorted({trace.family for trace in found}))
            raise click.UsageError(f"No family {', '.join(sorted(unknown))}; there are {there}.")
        found = [trace for trace in found if trace.family in wanted]
    with counting("traces", "scoring", len(found) * len(networks)) as update:
        differences = score_networks(
            networks,
            found,
            sizes,
            lambda name, trace: update(advance=1, note=f"{name}, {trace.problem}"),
            plain_baseline=plain_baseline,
        )
    if as_json:
        show_rows([vars(difference) for difference in differences], as_json=True)
        return
    baseline, *others = networks
    for name in others:
        for score, title in TITLES.items():
            rows = _table([d for d in differences if (d.network, d.score) == (name, score)])
            if rows:
                show_rows(rows, as_json=False, title=f"{name} - {baseline}: {title}")


def _networks(weights: tuple[Path, ...], priors: tuple[str, ...]) -> "dict[str, Network[Any]]":
    from amortes.nets.kernel import KernelConfig, KernelNetwork
    from amortes.prior.gp import named_prior
    from amortes.training.export import load_network

    networks: dict[str, Network[Any]] = {path.stem: load_network(path)[0] for path in weights}
    for name in priors:
        untrained = KernelNetwork(KernelConfig(encoder=None), named_prior(name)).eval()
        networks[f"prior {name}"] = untrained
    return networks


def _table(differences: "list[Difference]") -> list[dict[str, str]]:
    """A row for each family, a column for each n."""
    rows: dict[str, dict[str, str]] = {}
    for d in differences:
        error = "" if d.error is None else f" ±{d.error:.2f}"
        row = rows.setdefault(d.families, {"families": d.families, "problems": str(d.problems)})
        row[f"n = {d.n}"] = f"{d.mean:+.2f}{error} ({d.ahead:.0%})"
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    return [{column: row.get(column, "-") for column in columns} for row in rows.values()]
