"""Seconds per iteration: fitting, searching, and their sum, the wait for a suggestion.

All are means over iterations, seeds and the tasks of a panel. Two methods are compared over the
tasks, seeds and iterations that both have, since everything gets slower with more observations. The
recommendation is only needed for the protocol's regret and is not part of the total.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.protocol import SECONDS
from amortes.bench.report.load import Results, in_order
from amortes.bench.report.names import (
    label_of,
    panel_label,
    parse_method,
    same_acquisition,
    versus,
)
from amortes.bench.report.parts import Drawing, Part, Study, Table, section, spread
from amortes.bench.report.style import look, tidy

STEP = ["problem", "seed", "iteration"]


def timed_rows(results: Results) -> pd.DataFrame:
    """The rows whose fit and search were measured, with columns fit, search, recommend, total."""
    rows = results.rows.dropna(subset=list(SECONDS[:2]))
    rows = rows.rename(columns={name: name.removesuffix("_seconds") for name in SECONDS})
    return rows.assign(total=rows["fit"] + rows["search"])


def mean_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean seconds of each method on each panel where they are more than none."""
    groups = rows.groupby(["method", "panel"], sort=False)
    found = groups[["fit", "search", "recommend", "total"]].mean()
    found = found.assign(iterations=groups.size()).reset_index()
    return found[found["total"] > 0].sort_values("method", key=in_order, kind="stable")


def speed_ups(rows: pd.DataFrame) -> pd.DataFrame:
    """Each panel and acquisition of ours against the GPs, and against MAP GP + LogEI.

    Columns panel, ours, theirs, iteration (the last), factor, and `total_ours`, `total_theirs`.
    """
    sides = ["total_ours", "total_theirs"]
    found = []
    for panel, here in rows.groupby("panel", sort=False):
        there = here["method"].unique()
        steps = {name: here.loc[here["method"] == name, [*STEP, "total"]] for name in there}
        for ours in [name for name in there if parse_method(name).is_ours]:
            rivals = [same_acquisition(there, ours, model) for model in ("fb", "map")]
            for theirs in dict.fromkeys([*rivals, "map-logei"]):
                if theirs is None or theirs not in steps:
                    continue
                both = steps[ours].merge(steps[theirs], on=STEP, suffixes=("_ours", "_theirs"))
                if both["total_ours"].sum() > 0:
                    means = both[sides].mean()
                    found.append([panel, ours, theirs, both["iteration"].max(), *means])
    every = pd.DataFrame(found, columns=["panel", "ours", "theirs", "iteration", *sides])
    return every.assign(factor=every["total_theirs"] / every["total_ours"])


@section(
    "runtime",
    "Runtime",
    "Seconds per iteration, averaged over iterations and seeds: fit is from new data to a model, "
    "search is maximising the acquisition, total is their sum, and the speed-up divides totals "
    "over the iterations of runs that both methods have.",
)
def runtime(study: Study) -> Iterator[Part]:
    """Seconds of each method, and how much faster ours is."""
    results = study.timed or study.results
    rows = timed_rows(results)
    found = mean_times(rows)
    if found.empty:
        yield "Nothing was timed."
        return
    caption = "A dot for each problem (or HPO-B space); the axis is logarithmic."
    yield Drawing("runtime", caption, draw_runtime(found), found)
    ups = speed_ups(rows)
    if len(ups):
        ups = ups.assign(problem=ups["panel"].map(panel_label), up=ups["factor"].map(seconds) + "×")
        pairs = [versus(*pair) for pair in zip(ups["ours"], ups["theirs"], strict=True)]
        title = "Speed-up: how many times faster ours suggests a point (fit + search)"
        wide = spread(ups.assign(pair=pairs), ["problem"], "pair", list(ups["up"]))
        yield Table("speed-up", title, wide)
    runs = results.runs.assign(threads=results.runs["threads"].replace("", "unknown"))
    methods = runs.groupby("threads")["method"].unique()
    if len(methods) == 1:
        yield f"Threads per run: {methods.index[0]}."
    else:
        listed = "; ".join(f"{n}: {', '.join(sorted(names))}" for n, names in methods.items())
        yield (
            "Runs used different numbers of threads, so times are not comparable between them: "
            f"{listed}."
        )


def seconds(value: float) -> str:
    """Seconds with two significant digits, without exponents."""
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 4)}f}"


def draw_runtime(found: pd.DataFrame) -> Figure:
    """Seconds from new data to a suggestion: a row per method, a dot per panel, on a log axis."""
    totals = found.groupby("method", sort=False)["total"]
    typical = totals.agg(lambda total: np.exp(np.log(total).mean())).sort_values(kind="stable")
    figure = Figure(figsize=(9.0, 0.32 * len(typical) + 1.3), layout="constrained")
    ax = figure.subplots()
    ax.set_yticks(range(len(typical)), [*map(label_of, typical.index)])
    ax.set_ylim(len(typical) - 0.5, -0.5)
    for row, (method, mean) in enumerate(typical.items()):
        colour, total = look(str(method))["color"], totals.get_group(method)
        ax.plot(total, [row] * len(total), "o", color=colour, alpha=0.35, ms=5, mew=0)
        ax.plot(mean, row, "|", color=colour, ms=16, mew=2.5)
        text = ax.annotate(f"{seconds(mean)} s", (1.01, row), xycoords=("axes fraction", "data"))
        text.set(va="center", fontsize=8)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("seconds per suggestion (fit + search); bar and number: geometric mean")
    tidy(ax)
    return figure
