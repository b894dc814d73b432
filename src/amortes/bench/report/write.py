"""Write a report: the page, figures, their data, and tables."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
import markupsafe

from amortes.bench.report.comparison_sections import ranks_section, wins_section
from amortes.bench.report.contents import CONTENTS, FIGURES, TABLES
from amortes.bench.report.coverage import coverage_section, missing
from amortes.bench.report.curve_sections import (
    accuracy_section,
    noise_section,
    real_section,
    regret_section,
    traces_section,
    weights_section,
)
from amortes.bench.report.families import families_section
from amortes.bench.report.hpob import hpob_section
from amortes.bench.report.names import parse_method
from amortes.bench.report.parts import Drawing, Section, Study
from amortes.bench.report.published import SEEDS
from amortes.bench.report.results import FLOOR
from amortes.bench.report.runtime import runtime_section
from amortes.bench.report.standings import RULE, standings_section
from amortes.bench.report.style import COLOURS, inline_svg, save
from amortes.bench.report.summary import Summary, summarise
from amortes.errors import ConfigError
from amortes.files import write_text

PAGE = "index.html"
SECTIONS: dict[str, Callable[[Study], Section]] = {
    "regret": regret_section,
    "accuracy": accuracy_section,
    "hpob": hpob_section,
    "real": real_section,
    "families": families_section,
    "wins": wins_section,
    "ranks": ranks_section,
    "standings": standings_section,
    "runtime": runtime_section,
    "noise": noise_section,
    "weights": weights_section,
    "traces": traces_section,
    "coverage": coverage_section,
}


def write_report(study: Study, folder: Path) -> list[Path]:
    """Write everything, and remove what only an older report has; returns what was written.

    index.html, figures/*.png and *.svg, data/*.csv (what figures show), tables/*.md.
    """
    sections, summary = [SECTIONS[name](study) for name in CONTENTS], summarise(study)
    written = [path for section in sections for path in _write_section(section, folder)]
    headlines = folder / "tables" / "summary.md"
    write_text(headlines, summary.table().markdown())
    write_text(folder / PAGE, render(study, summary, sections))
    for stale in _parts(folder).difference(written):
        stale.unlink(missing_ok=True)
    return [folder / PAGE, headlines, *written]


def write_section(study: Study, folder: Path, name: str) -> list[Path]:
    """Write the figures and tables of one section, without the page."""
    if name not in SECTIONS:
        raise ConfigError(f"There is no section {name!r}; there are {', '.join(SECTIONS)}.")
    section = SECTIONS[name](study)
    if section.empty:
        notes = " ".join(section.notes)
        raise ConfigError(f"These results have nothing for the section {name!r}: {notes}")
    return _write_section(section, folder)


def write_figure(study: Study, folder: Path, name: str) -> list[Path]:
    """Write one figure and its data."""
    if name not in FIGURES:
        raise ConfigError(f"There is no figure {name!r}; there are {', '.join(FIGURES)}.")
    section = SECTIONS[FIGURES[name]](study)
    drawings = [drawing for drawing in section.drawings if drawing.name == name]
    if not drawings:
        notes = " ".join(section.notes)
        raise ConfigError(f"These results have nothing for the figure {name!r}. {notes}".rstrip())
    return _write_section(replace(section, drawings=drawings, tables=()), folder)


def render(study: Study, summary: Summary, sections: Sequence[Section]) -> str:
    """The page: one file that needs no other, light and dark."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("amortes.bench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"svg": _svg, "data_url": _data_url, "strong": _strong}
    absent = [section for section in sections if section.empty]
    runs = study.results.runs[["problem", "method", "seed", "iteration", "value", "regret"]]
    runs = runs.rename(columns={"iteration": "observations"})
    options = {"traces": " --traces TRACES", "runtime": " --timed TIMED" if study.timed else ""}
    return environment.get_template("page.html").render(
        summary=summary,
        sections=[section for section in sections if not section.empty],
        gaps=[
            *(f"No section “{section.title}”: {' '.join(section.notes)}" for section in absent),
            *missing(study.results),
        ],
        runs=runs.to_csv(index=False, float_format="%.8g", lineterminator="\n"),
        options=options,
        weights=[
            f"{parse_method(method).label}: {', '.join(d or 'not recorded' for d in digests)}"
            for method, digests in study.results.weights.items()
        ],
        environments=[
            json.dumps(one, indent=2, ensure_ascii=False) for one in study.results.environments
        ],
        colours=COLOURS,
        floor=FLOOR,
        rule=RULE,
        seeds=SEEDS,
    )


def _svg(drawing: Drawing) -> markupsafe.Markup:
    return markupsafe.Markup(inline_svg(drawing.svg, drawing.name, drawing.caption))


def _data_url(csv: str) -> str:
    return f"data:text/csv;base64,{base64.b64encode(csv.encode()).decode()}"


def _strong(cell: str) -> markupsafe.Markup:
    bare = cell.removeprefix("**").removesuffix("**")
    return markupsafe.Markup("<strong>{}</strong>" if bare != cell else "{}").format(bare)


def _parts(folder: Path) -> set[Path]:
    """All files of sections there may be."""
    figures = {f"figures/{name}{suffix}" for name in FIGURES for suffix in (".png", ".svg")}
    data = {f"data/{name}.csv" for name in FIGURES}
    tables = {f"tables/{name}.md" for name in TABLES}
    return {folder / name for name in figures | data | tables}


def _write_section(section: Section, folder: Path) -> list[Path]:
    written = []
    for drawing in section.drawings:
        written += save(drawing.figure, drawing.svg, folder / "figures", drawing.name)
        written.append(folder / "data" / f"{drawing.name}.csv")
        write_text(written[-1], drawing.csv())
    for table in section.tables:
        written.append(folder / "tables" / f"{table.name}.md")
        write_text(written[-1], table.markdown())
    return written
