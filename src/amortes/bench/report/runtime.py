"""Seconds per iteration: fitting, searching, and their sum, the wait for a suggestion.

All are means over iterations, seeds and the tasks of a panel. Two methods are compared over the
tasks, seeds and iterations that both have, since everything gets slower with more observations. The
recommendation is only needed for the protocol's regret and is not part of the total.
"""

import math
from typing import Any

import pandas as pd

from amortes.bench.report.comparison_figures import draw_runtime
from amortes.bench.report.names import panel_label, parse_method, same_acquisition, versus
from amortes.bench.report.parts import Drawing, Section, Study, Table
from amortes.bench.report.results import SECONDS, Results
from amortes.bench.report.text import seconds, times

STEP = ["problem", "seed", "iteration"]
PARTS = ["fit", "search", "total"]


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
    return found[found["total"] > 0]


def speed_ups(rows: pd.DataFrame) -> pd.DataFrame:
    """Each panel and acquisition of ours against the GPs, and against MAP GP + LogEI.

    Columns panel, ours, theirs, model, iteration (the last), factor, and fit, search and total of
    both, with `_ours` and `_theirs`.
    """
    found = []
    for panel, here in rows.groupby("panel", sort=False):
        there = list(dict.fromkeys(here["method"]))
        for ours in filter(lambda name: parse_method(name).is_ours, there):
            rivals = [same_acquisition(there, parse_method(ours), model) for model in ("fb", "map")]
            for theirs in dict.fromkeys([*rivals, "map-logei"]):
                ours_rows, their_rows = (
                    here.loc[here["method"] == name, [*STEP, *PARTS]] for name in (ours, theirs)
                )
                both = ours_rows.merge(their_rows, on=STEP, suffixes=("_ours", "_theirs"))
                if len(both) and both["total_ours"].sum() > 0:
                    model = parse_method(str(theirs)).model
                    facts: dict[str, Any] = {"panel": panel, "ours": ours, "theirs": theirs}
                    facts |= {"model": model, "iteration": both["iteration"].max()}
                    found.append(facts | dict(both.drop(columns=STEP).mean()))
    sides = [f"{part}_{side}" for side in ("ours", "theirs") for part in PARTS]
    every = pd.DataFrame(found, columns=["panel", "ours", "theirs", "model", "iteration", *sides])
    return every.assign(factor=every["total_theirs"] / every["total_ours"])


def runtime_section(study: Study) -> Section:
    """Seconds per iteration."""
    results = study.timed or study.results
    rows = timed_rows(results)
    found = mean_times(rows)
    if found.empty:
        return Section("runtime", notes=["Nothing was timed."])
    order = {name: place for place, name in enumerate(results.methods)}
    found = found.sort_values("method", key=lambda names: names.map(order), kind="stable")
    ups = speed_ups(rows)
    tables = [_factor_table(ups), _speed_table(ups)] if len(ups) else []
    drawing = Drawing("runtime", draw_runtime(found), found)
    return Section("runtime", [drawing], tables, _thread_notes(results))


def _factor_table(found: pd.DataFrame) -> Table:
    """Problems down; across, our acquisitions against the models that have the same."""
    factors = found.set_index(["panel", "ours", "theirs"])["factor"].to_dict()
    columns = {"problem": [panel_label(name) for name in dict.fromkeys(found["panel"])]}
    for pair in dict.fromkeys(zip(found["ours"], found["theirs"], strict=True)):
        cells = [factors.get((name, *pair), math.nan) for name in dict.fromkeys(found["panel"])]
        columns[versus(*pair)] = [times(factor) for factor in cells]
    return Table("speed-up", pd.DataFrame(columns))


def _speed_table(found: pd.DataFrame) -> Table:
    cells = {
        "problem": found["panel"].map(panel_label),
        "acquisition": found["ours"].map(lambda name: parse_method(name).short),
        "rival": found["theirs"].map(lambda name: parse_method(name).label),
        "n up to": found["iteration"].astype(str),
    }
    for side, whose in (("ours", "our"), ("theirs", "rival's")):
        for part in PARTS:
            cells[f"{whose} {part} (s)"] = found[f"{part}_{side}"].map(seconds)
    cells["speed-up"] = found["factor"].map(times)
    return Table("runtime-table", pd.DataFrame(cells))


def _thread_notes(results: Results) -> list[str]:
    runs = results.runs.assign(threads=results.runs["threads"].replace("", "unknown"))
    methods = runs.groupby("threads")["method"].unique()
    if len(methods) == 1:
        return [f"Threads per run: {methods.index[0]}."]
    listed = "; ".join(f"{n}: {', '.join(sorted(names))}" for n, names in methods.items())
    return [
        "Runs used different numbers of threads, so times are not comparable between them: "
        f"{listed}."
    ]
