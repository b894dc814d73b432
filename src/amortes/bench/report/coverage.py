"""What results hold, and what is missing from them."""

from collections.abc import Iterator

import pandas as pd

from amortes.bench.report.names import GROUPS, label_of, panel_label
from amortes.bench.report.parts import Part, Study, Table, section
from amortes.bench.report.results import Results
from amortes.bench.report.text import span
from amortes.optimiser.text import counted


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


def what_was_run(study: Study) -> str:
    """One paragraph."""
    results = study.results
    seeds = results.runs.groupby(["problem", "method"]).size()
    groups = [f"{len(found)} {GROUPS[name]}" for name, found in study.groups.items()]
    each = f"{seeds.min()} to {seeds.max()} seeds"
    if seeds.min() == seeds.max():
        each = counted(seeds.min(), "seed")
    versions, commits = (sorted(set(results.rows[c]) - {""}) for c in ("version", "commit"))
    made = f" amortes {', '.join(versions)}" if versions else ""
    if commits:
        short = [commit[:10] + ("+" if commit.endswith("+") else "") for commit in commits]
        made += f" (commit {', '.join(short)})"
    return (
        f"{len(results.runs):,} runs with {len(results.rows):,} recorded iterations: "
        f"{counted(len(results.methods), 'method')} on "
        f"{counted(len(results.problems), 'problem')} ({'; '.join(groups)}), {each} each."
        + (f" Made with{made}." if made else "")
    )


def missing(results: Results) -> Iterator[str]:
    """Sentences on what failed or is odd."""
    yield from results.notes
    for method, digests in results.weights.items():
        if len(digests) > 1:
            listed = ", ".join(digest or "not recorded" for digest in digests)
            yield f"{method}: its runs were made with different weights ({listed})."
    for line in results.failures:
        yield f"Failed: {line}"
