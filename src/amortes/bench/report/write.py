"""Write a report: the page, figures, their data, and tables; what results hold and lack."""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jinja2
import pandas as pd

from amortes.bench.report.curve_sections import accuracy, hpob, noise, real, regret, traces, weights
from amortes.bench.report.curves import SEEDS
from amortes.bench.report.families import families
from amortes.bench.report.load import FLOOR, Results
from amortes.bench.report.names import GROUPS, group_of, label_of, panel_label
from amortes.bench.report.parts import Drawing, Part, Section, Study, Table, section, spread
from amortes.bench.report.runtime import runtime
from amortes.bench.report.standings import RULE, losses, standings, standings_section
from amortes.errors import ConfigError
from amortes.files import write_text
from amortes.optimiser.text import counted

PAGE = "index.html"


@section(
    "coverage",
    "Coverage",
    "A cell has the number of seeds and of observations at the end of a run, for HPO-B also the "
    "number of tasks; an empty cell was not run.",
)
def coverage(study: Study) -> Iterator[Part]:
    """What was run and what was not."""
    runs = study.results.runs
    tasks = runs.groupby("panel")["problem"].nunique()
    groups = runs.groupby(["panel", "method"], sort=False)
    cells = []
    for (panel, _), found in groups:
        seeds = found["problem"].value_counts()
        each = f"{_span(seeds)} × {_span(found['iteration'])}"
        cells.append(f"{len(seeds)} × {each}" if tasks[str(panel)] > 1 else each)
    wide = spread(groups.size().reset_index(), ["panel"], "method", cells)
    wide = wide[["panel", *study.results.methods]].rename(columns={"panel": "problem"})
    wide = wide.rename(columns=label_of).assign(problem=wide["problem"].map(panel_label))
    yield Table("coverage", "Runs: (tasks ×) seeds × observations", wide)
    yield from missing(study.results)


def _span(numbers: "pd.Series[int]") -> str:
    """`3`, or `3-5` if they differ."""
    low, high = numbers.min(), numbers.max()
    return f"{low}-{high}" if low < high else str(low)


def what_was_run(study: Study) -> str:
    """One paragraph."""
    results = study.results
    seeds = results.runs.groupby(["problem", "method"]).size()
    groups = Counter(map(group_of, results.problems))
    listed = "; ".join(f"{count} {GROUPS[name]}" for name, count in groups.items())
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
        f"{counted(len(results.problems), 'problem')} ({listed}), {each} each."
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


IN_ORDER = (
    *(families, regret, accuracy, hpob, real, standings_section, runtime),
    *(noise, weights, traces, coverage),
)
SECTIONS: dict[str, Section] = {section.name: section for section in IN_ORDER}


def write_report(
    study: Study, folder: Path, only: str | None = None, figure: str | None = None
) -> list[Path]:
    """Write everything; returns what was written.

    index.html, figures/*.png and *.svg, data/*.csv (what figures show), tables/*.md. With `only`
    the parts of one section, with `figure` one figure and its data, both without the page.
    """
    if only is not None and only not in SECTIONS:
        raise ConfigError(f"There is no section {only!r}; there are {', '.join(SECTIONS)}.")
    chosen = IN_ORDER if only is None else [SECTIONS[only]]
    contents = {section: list(section.make(study)) for section in chosen}
    parts = [part for made in contents.values() for part in made if not isinstance(part, str)]
    if only is not None and not parts:
        notes = " ".join(map(str, contents[SECTIONS[only]]))
        raise ConfigError(f"These results have nothing for the section {only!r}: {notes}")
    if figure is not None:
        drawings = {part.name: part for part in parts if isinstance(part, Drawing)}
        if figure not in drawings:
            names = ", ".join(drawings)
            raise ConfigError(f"These results have no figure {figure!r}; they have {names}.")
        parts = [drawings[figure]]
    written = [path for part in parts for path in part.write(folder)]
    if only is None and figure is None:
        write_text(folder / PAGE, render(study, contents))
        written.insert(0, folder / PAGE)
    return written


def render(study: Study, contents: Mapping[Section, Sequence[Part]]) -> str:
    """The page: one file that needs no other, light and dark."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("amortes.bench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["data_url"] = _data_url
    found = standings(study)
    empty = {
        section: " ".join(map(str, parts))
        for section, parts in contents.items()
        if all(isinstance(part, str) for part in parts)
    }
    runs = study.results.runs[["problem", "method", "seed", "iteration", "value", "regret"]]
    runs = runs.rename(columns={"iteration": "observations"})
    return environment.get_template("page.html").render(
        summary=what_was_run(study),
        compared=(found["verdict"] != "unknown").sum(),
        worse=list(losses(found)),
        contents={section: parts for section, parts in contents.items() if section not in empty},
        gaps=[f"No section “{section.title}”: {notes}" for section, notes in empty.items()]
        + list(missing(study.results)),
        runs=runs.to_csv(index=False, float_format="%.8g", lineterminator="\n"),
        options={"traces": " --traces TRACES", "runtime": " --timed TIMED" if study.timed else ""},
        weights=[
            f"{label_of(method)}: {', '.join(digest or 'not recorded' for digest in digests)}"
            for method, digests in study.results.weights.items()
        ],
        environments=[
            json.dumps(one, indent=2, ensure_ascii=False) for one in study.results.environments
        ],
        floor=FLOOR,
        rule=RULE,
        seeds=SEEDS,
    )


def _data_url(text: str, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
