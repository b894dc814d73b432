"""What a results file holds, and what is missing from it."""

from amortes.bench.report.names import (
    FAMILIES,
    HPOB,
    LCBENCH,
    SYNTHETIC,
    family,
    panel,
    panel_label,
    parse_method,
)
from amortes.bench.report.results import Results
from amortes.bench.report.study import Section, Study
from amortes.bench.report.tables import Table

STANDARD_METHODS = (
    "pes",
    "mes",
    "jes",
    "ei",
    "fb-pes",
    "fb-mes",
    "fb-jes",
    "fb-ei",
    "map-logei",
    "map-gibbon",
    "map-jes",
    "optuna-tpe",
    "optuna-gp",
    "random",
)
"""What a whole study compares; LogEI may stand in for EI."""


def coverage_table(results: Results) -> Table:
    """Seeds and iterations of each method (across) on each panel (down)."""
    rows = []
    for name in dict.fromkeys(panel(problem) for problem in results.problems):
        row = [panel_label(name)]
        problems = [problem for problem in results.problems if panel(problem) == name]
        for method in results.methods:
            runs = [run for p in problems for run in results.seeds(p, method).values()]
            tasks = sum(bool(results.seeds(problem, method)) for problem in problems)
            seeds = [len(found) for p in problems if (found := results.seeds(p, method))]
            row.append(
                f"{f'{tasks} × ' if len(problems) > 1 else ''}{_span(seeds)} × "
                f"{_span([run.last for run in runs])}"
                if runs
                else ""
            )
        rows.append(row)
    return Table(
        name="coverage",
        title="Runs: (tasks ×) seeds × observations",
        columns=["problem", *(parse_method(method).label for method in results.methods)],
        rows=rows,
    )


def coverage_section(study: Study) -> Section:
    """What was run and what was not."""
    return Section(
        name="coverage",
        title="Coverage",
        reading="A cell has the number of seeds and of observations at the end of a run, for "
        "HPO-B also the number of tasks; an empty cell was not run.",
        tables=[coverage_table(study.results)],
        notes=missing(study.results),
    )


def missing(results: Results) -> list[str]:
    """Sentences on what a whole study would have and these results do not."""
    found = [*results.notes, *(f"Failed: {line}" for line in results.failures)]
    present = {panel(problem) for problem in results.problems}
    for title, group in (("Synthetic", SYNTHETIC), ("LCBench", LCBENCH), ("HPO-B", HPOB)):
        absent = [panel_label(name) for name in group if name not in present]
        if absent:
            found.append(f"{title}: no runs on {'; '.join(absent)}.")
    if not any(family(problem) == "noise" for problem in results.problems):
        found.append(f"No runs with another noise ({FAMILIES['noise']}).")
    stand_ins = {"ei": "logei", "fb-ei": "fb-logei"}
    absent = [
        parse_method(name).label
        for name in STANDARD_METHODS
        if name not in results.methods and stand_ins.get(name) not in results.methods
    ]
    if absent:
        found.append(f"Methods without any run: {', '.join(absent)}.")
    return found + _holes(results)


def _holes(results: Results) -> list[str]:
    """Methods that lack problems or seeds others have."""
    found = []
    seeds = {
        problem: {seed for m in results.on(problem) for seed in results.seeds(problem, m)}
        for problem in results.problems
    }
    for method in results.methods:
        label = parse_method(method).label
        absent = [panel_label(p) for p in results.problems if not results.seeds(p, method)]
        if absent:
            found.append(f"{label}: not run on {_shorten(absent)}.")
        fewer = [
            f"{panel_label(problem)} ({len(runs)} of {len(seeds[problem])})"
            for problem in results.problems
            if (runs := results.seeds(problem, method)) and len(runs) < len(seeds[problem])
        ]
        if fewer:
            found.append(f"{label}: fewer seeds than others on {_shorten(fewer)}.")
    return found


def _span(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"


def _shorten(names: list[str], most: int = 6) -> str:
    rest = f"; and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + rest
