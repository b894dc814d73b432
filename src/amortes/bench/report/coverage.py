"""What results hold, and what is missing from them."""

from collections.abc import Iterator

import pandas as pd

from amortes.bench.report.names import label_of, panel_label
from amortes.bench.report.parts import Part, Study, Table, section
from amortes.bench.report.results import Results
from amortes.bench.report.text import span

MOST = 6
"""Names in a sentence, before it says how many more there are."""


@section(
    "coverage",
    "Coverage",
    "A cell has the number of seeds and of observations at the end of a run, for HPO-B also the "
    "number of tasks; an empty cell was not run.",
)
def coverage(study: Study) -> Iterator[Part]:
    """What was run and what was not."""
    rows = []
    for panel, runs in study.results.runs.groupby("panel", sort=False):
        row = {"problem": panel_label(str(panel))}
        for method in study.results.methods:
            found = runs[runs["method"] == method]
            seeds = found["problem"].value_counts()
            tasks = f"{len(seeds)} × " if runs["problem"].nunique() > 1 else ""
            cell = f"{tasks}{span(seeds)} × {span(found['iteration'])}" if len(found) else ""
            row[label_of(method)] = cell
        rows.append(row)
    yield Table("coverage", "Runs: (tasks ×) seeds × observations", pd.DataFrame(rows))
    yield from missing(study.results)


def missing(results: Results) -> Iterator[str]:
    """Sentences on what failed, is odd, or was run by some methods only."""
    yield from results.notes
    for method, digests in results.weights.items():
        if len(digests) > 1:
            listed = ", ".join(digest or "not recorded" for digest in digests)
            yield f"{method}: its runs were made with different weights ({listed})."
    for line in results.failures:
        yield f"Failed: {line}"
    yield from _holes(results)


def _holes(results: Results) -> Iterator[str]:
    """Methods that lack problems or seeds others have."""
    seeds = results.runs.groupby("problem", sort=False)["seed"].nunique()
    counts = results.runs.groupby(["problem", "method"])["seed"].nunique().unstack(fill_value=0)
    for method in results.methods:
        absent, fewer = [], []
        for (problem, most), n in zip(seeds.items(), counts[method][seeds.index], strict=True):
            label = panel_label(str(problem))
            if n == 0:
                absent.append(label)
            elif n < most:
                fewer.append(f"{label} ({n} of {most})")
        if absent:
            yield f"{label_of(method)}: not run on {_shortened(absent)}."
        if fewer:
            yield f"{label_of(method)}: fewer seeds than others on {_shortened(fewer)}."


def _shortened(names: list[str]) -> str:
    rest = f"; and {len(names) - MOST} more" if len(names) > MOST else ""
    return "; ".join(names[:MOST]) + rest
