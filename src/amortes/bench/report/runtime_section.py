"""The section on runtime."""

import math
from collections.abc import Sequence

from amortes.bench.report.comparison_figures import draw_runtime
from amortes.bench.report.names import panel_label, parse_method, versus
from amortes.bench.report.results import Results
from amortes.bench.report.runtime import SpeedUp, Timing, panels, speed_ups, timing
from amortes.bench.report.study import Drawing, Section, Study, join
from amortes.bench.report.tables import Table, seconds, times


def runtime_section(study: Study) -> Section:
    """Seconds per iteration."""
    results = study.times
    timed = {
        method: {
            name: one
            for name, problems in panels(results).items()
            if (one := timing(results, method, problems)) is not None and one.total > 0
        }
        for method in results.methods
    }
    timed = {method: found for method, found in timed.items() if found}
    reading = (
        "Seconds per iteration, averaged over iterations and seeds: fit is from new data to a "
        "model, search is maximising the acquisition, total is their sum, and the speed-up divides "
        "totals over the iterations of runs that both methods have."
    )
    if not timed:
        notes = ["Nothing was timed."]
        return Section(name="runtime", title="Runtime", reading=reading, notes=notes)
    found = speed_ups(results)
    tables = [_factor_table(found), _speed_table(found)] if found else []
    return Section(
        name="runtime",
        title="Runtime",
        reading=reading,
        drawings=[
            Drawing(
                name="runtime",
                figure=draw_runtime(timed),
                caption="A dot for each problem (or HPO-B space); the axis is logarithmic.",
                data=_times_table(timed),
            )
        ],
        tables=tables,
        notes=_thread_notes(results),
    )


def _times_table(timed: dict[str, dict[str, Timing]]) -> Table:
    return Table(
        name="runtime",
        title="Mean seconds per iteration",
        columns=["method", "panel", "fit", "search", "recommend", "total", "iterations"],
        rows=[
            [
                method,
                name,
                *(f"{x:.6g}" for x in (one.fit, one.search, one.recommend, one.total)),
                str(one.iterations),
            ]
            for method, found in timed.items()
            for name, one in found.items()
        ],
    )


def _factor_table(found: Sequence[SpeedUp]) -> Table:
    """Problems down; across, our acquisitions against the models that have the same."""
    pairs = dict.fromkeys((one.ours, one.theirs) for one in found)
    factors = {(one.panel, one.ours, one.theirs): one.factor for one in found}
    return Table(
        name="speed-up",
        title="Speed-up: how many times faster ours suggests a point (fit + search)",
        columns=["problem", *(versus(*pair) for pair in pairs)],
        rows=[
            [
                panel_label(name),
                *(times(factors.get((name, *pair), math.nan)) for pair in pairs),
            ]
            for name in dict.fromkeys(one.panel for one in found)
        ],
    )


def _speed_table(found: Sequence[SpeedUp]) -> Table:
    return Table(
        name="runtime-table",
        title="Seconds per iteration: ours, the rival's, and how many times faster ours is",
        columns=[
            "problem",
            "acquisition",
            "rival",
            "n up to",
            "our fit (s)",
            "our search (s)",
            "our total (s)",
            "rival's fit (s)",
            "rival's search (s)",
            "rival's total (s)",
            "speed-up",
        ],
        rows=[
            [
                panel_label(one.panel),
                parse_method(one.ours).label.removeprefix("amortes "),
                parse_method(one.theirs).label,
                str(one.last),
                *(seconds(x) for x in (one.our_time.fit, one.our_time.search, one.our_time.total)),
                *(
                    seconds(x)
                    for x in (one.their_time.fit, one.their_time.search, one.their_time.total)
                ),
                times(one.factor),
            ]
            for one in found
        ],
    )


def _thread_notes(results: Results) -> list[str]:
    threads: dict[str, set[str]] = {}
    for run in results.runs:
        threads.setdefault(run.threads or "unknown", set()).add(run.method)
    if len(threads) == 1:
        return [f"Threads per run: {next(iter(threads))}."]
    return [
        "Runs used different numbers of threads, so times are not comparable between them: "
        + "; ".join(f"{n}: {join(sorted(methods))}" for n, methods in sorted(threads.items()))
        + "."
    ]
