"""The section on runtime."""

from amortes.bench.report.comparison_figures import draw_runtime
from amortes.bench.report.names import panel_label, parse_method
from amortes.bench.report.runtime import Timing, panels, speed_ups, timing
from amortes.bench.report.study import Drawing, Section, Study, join
from amortes.bench.report.tables import Table, seconds


def runtime_section(study: Study) -> Section:
    """Seconds per iteration."""
    results = study.results
    times = {
        method: {
            name: one
            for name, problems in panels(results).items()
            if (one := timing(results, method, problems)) is not None and one.total > 0
        }
        for method in results.methods
    }
    times = {method: found for method, found in times.items() if found}
    reading = (
        "Seconds per iteration, averaged over iterations and seeds: fit is from new data to a "
        "model, search is maximising the acquisition, total is their sum, and the speed-up divides "
        "totals over the iterations that both methods have."
    )
    if not times:
        notes = ["Nothing was timed."]
        return Section(name="runtime", title="Runtime", reading=reading, notes=notes)
    return Section(
        name="runtime",
        title="Runtime",
        reading=reading,
        drawings=[
            Drawing(
                name="runtime",
                figure=draw_runtime(times),
                caption="A dot for each problem (or HPO-B space); the axis is logarithmic.",
                data=_times_table(times),
            )
        ],
        tables=[_speed_table(study)],
        notes=_thread_notes(study),
    )


def _times_table(times: dict[str, dict[str, Timing]]) -> Table:
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
            for method, found in times.items()
            for name, one in found.items()
        ],
    )


def _speed_table(study: Study) -> Table:
    return Table(
        name="runtime-table",
        title="Seconds per iteration: ours, the rival's, and how many times faster ours is",
        columns=[
            "problem",
            "acquisition",
            "rival",
            "n up to",
            "our fit",
            "our search",
            "our total",
            "rival's fit",
            "rival's search",
            "rival's total",
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
                f"{one.factor:.3g}",
            ]
            for one in speed_ups(study.results)
        ],
    )


def _thread_notes(study: Study) -> list[str]:
    threads: dict[str, set[str]] = {}
    for run in study.results.runs:
        threads.setdefault(run.threads or "unknown", set()).add(run.method)
    if len(threads) == 1:
        return [f"Threads per run: {next(iter(threads))}."]
    return [
        "Runs used different numbers of threads, so times are not comparable between them: "
        + "; ".join(f"{n}: {join(sorted(methods))}" for n, methods in sorted(threads.items()))
        + "."
    ]
