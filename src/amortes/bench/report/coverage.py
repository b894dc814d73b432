"""What results hold, and what is missing from them."""

import pandas as pd

from amortes.bench.methods.registry import METHODS
from amortes.bench.problems.registry import KINDS
from amortes.bench.report.names import GROUPS, panel_label, parse_method
from amortes.bench.report.parts import Section, Study, Table
from amortes.bench.report.results import Results
from amortes.bench.report.text import span

STAND_INS = {"ei": "logei", "fb-ei": "fb-logei"}
EXPECTED = {"Synthetic": "synthetic", "LCBench": "lcbench", "HPO-B": "hpob"}
MOST = 6
"""Names in a sentence, before it says how many more there are."""


def coverage_section(study: Study) -> Section:
    """What was run and what was not."""
    return Section("coverage", tables=[coverage_table(study.results)], notes=missing(study.results))


def coverage_table(results: Results) -> Table:
    """Seeds and iterations of each method (across) on each panel (down)."""
    rows = []
    for panel, runs in results.runs.groupby("panel", sort=False):
        row = {"problem": panel_label(str(panel))}
        for method in results.methods:
            found = runs[runs["method"] == method]
            seeds = found["problem"].value_counts()
            tasks = f"{len(seeds)} × " if runs["problem"].nunique() > 1 else ""
            cell = f"{tasks}{span(seeds)} × {span(found['iteration'])}" if len(found) else ""
            row[parse_method(method).label] = cell
        rows.append(row)
    return Table("coverage", pd.DataFrame(rows))


def missing(results: Results) -> list[str]:
    """Sentences on what a whole study would have and these results do not."""
    found = [*results.notes, *(f"Failed: {line}" for line in results.failures)]
    panels, groups = set(results.runs["panel"]), {kind.group: kind for kind in KINDS}
    for title, group in EXPECTED.items():
        absent = [label for name, label in groups[group].labels.items() if name not in panels]
        if absent:
            found.append(f"{title}: no runs on {'; '.join(absent)}.")
    if panels.isdisjoint(groups["noise"].names):
        found.append(f"No runs with another noise ({GROUPS['noise']}).")
    absent = [
        parse_method(name).label
        for name, entry in METHODS.items()
        if entry.expected and not {name, STAND_INS.get(name)} & set(results.methods)
    ]
    if absent:
        found.append(f"Methods without any run: {', '.join(absent)}.")
    return found + _holes(results)


def _holes(results: Results) -> list[str]:
    """Methods that lack problems or seeds others have."""
    seeds = results.runs.groupby("problem", sort=False)["seed"].nunique()
    counts = results.runs.groupby(["problem", "method"])["seed"].nunique().unstack(fill_value=0)
    found = []
    for method in results.methods:
        label, count = parse_method(method).label, counts[method].reindex(seeds.index)
        if absent := [panel_label(str(problem)) for problem in seeds.index[count == 0]]:
            found.append(f"{label}: not run on {_shortened(absent)}.")
        fewer = [
            f"{panel_label(str(problem))} ({count[problem]} of {seeds[problem]})"
            for problem in seeds.index[(count > 0) & (count < seeds)]
        ]
        if fewer:
            found.append(f"{label}: fewer seeds than others on {_shortened(fewer)}.")
    return found


def _shortened(names: list[str]) -> str:
    rest = f"; and {len(names) - MOST} more" if len(names) > MOST else ""
    return "; ".join(names[:MOST]) + rest
