"""Write a report: the page, figures, their data, and tables."""

from pathlib import Path

from amortes.bench.report.page import render
from amortes.bench.report.sections import SECTIONS
from amortes.bench.report.study import Section, Study
from amortes.bench.report.style import save
from amortes.bench.report.summary import headline_table, summarise
from amortes.errors import ConfigError
from amortes.files import write_text

PAGE = "index.html"


def write_report(study: Study, folder: Path, only: str | None = None) -> list[Path]:
    """Write everything, or one section without the page; returns what was written.

    index.html, figures/*.png and *.svg, data/*.csv (what figures show), tables/*.md.
    """
    if only is not None and only not in SECTIONS:
        raise ConfigError(f"There is no section {only!r}; there are {', '.join(SECTIONS)}.")
    sections = [SECTIONS[name](study) for name in ([only] if only else SECTIONS)]
    written = [path for section in sections for path in _write_section(section, folder)]
    if only:
        if not written:
            notes = " ".join(sections[0].notes)
            raise ConfigError(f"These results have nothing for the section {only!r}: {notes}")
        return written
    summary = folder / "tables" / "summary.md"
    write_text(summary, headline_table(summarise(study)).markdown())
    write_text(folder / PAGE, render(study, sections))
    return [folder / PAGE, summary, *written]


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
