"""Write a report: the page, figures, their data, and tables."""

from dataclasses import replace
from pathlib import Path

from amortes.bench.report.page import render
from amortes.bench.report.sections import FIGURES, SECTIONS, TABLES
from amortes.bench.report.study import Section, Study
from amortes.bench.report.style import save
from amortes.bench.report.summary import headline_table, summarise
from amortes.errors import ConfigError
from amortes.files import write_text

PAGE = "index.html"


def write_report(study: Study, folder: Path) -> list[Path]:
    """Write everything, and remove what only an older report has; returns what was written.

    index.html, figures/*.png and *.svg, data/*.csv (what figures show), tables/*.md.
    """
    sections = [build(study) for build in SECTIONS.values()]
    written = [path for section in sections for path in _write_section(section, folder)]
    summary = folder / "tables" / "summary.md"
    write_text(summary, headline_table(summarise(study)).markdown())
    write_text(folder / PAGE, render(study, sections))
    for stale in _parts(folder).difference(written):
        stale.unlink(missing_ok=True)
    return [folder / PAGE, summary, *written]


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
        data = folder / "data" / f"{drawing.name}.csv"
        write_text(data, drawing.data.csv())
        written.append(data)
    for table in section.tables:
        path = folder / "tables" / f"{table.name}.md"
        write_text(path, table.markdown())
        written.append(path)
    return written
