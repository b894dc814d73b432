"""Write a report: the page, figures, their data, and tables."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import jinja2
import markupsafe

from amortes.bench.report.coverage import coverage, missing, what_was_run
from amortes.bench.report.curve_sections import accuracy, noise, real, regret, traces, weights
from amortes.bench.report.families import families
from amortes.bench.report.hpob import hpob
from amortes.bench.report.names import label_of
from amortes.bench.report.parts import Drawing, Part, Section, Study, Table
from amortes.bench.report.published import SEEDS
from amortes.bench.report.results import FLOOR
from amortes.bench.report.runtime import runtime
from amortes.bench.report.standings import RULE, losses, standings, standings_section
from amortes.bench.report.style import COLOURS, inline_svg, save
from amortes.errors import ConfigError
from amortes.files import write_text

PAGE = "index.html"
IN_ORDER = (
    *(families, regret, accuracy, hpob, real, standings_section, runtime),
    *(noise, weights, traces, coverage),
)
SECTIONS: dict[str, Section] = {section.name: section for section in IN_ORDER}


def write_report(study: Study, folder: Path) -> list[Path]:
    """Write everything; returns what was written.

    index.html, figures/*.png and *.svg, data/*.csv (what figures show), tables/*.md.
    """
    contents = {section: list(section.make(study)) for section in SECTIONS.values()}
    parts = [part for found in contents.values() for part in found if not isinstance(part, str)]
    page = folder / PAGE
    write_text(page, render(study, contents))
    return [page, *(path for part in parts for path in _write(part, folder))]


def write_section(study: Study, folder: Path, name: str) -> list[Path]:
    """Write the figures and tables of one section, without the page."""
    if name not in SECTIONS:
        raise ConfigError(f"There is no section {name!r}; there are {', '.join(SECTIONS)}.")
    parts = list(SECTIONS[name].make(study))
    if _empty(parts):
        notes = " ".join(map(str, parts))
        raise ConfigError(f"These results have nothing for the section {name!r}: {notes}")
    return [path for part in parts if not isinstance(part, str) for path in _write(part, folder)]


def write_figure(study: Study, folder: Path, name: str) -> list[Path]:
    """Write one figure and its data."""
    names = []
    for section in SECTIONS.values():
        for part in section.make(study):
            if isinstance(part, Drawing):
                names.append(part.name)
                if part.name == name:
                    return _write(part, folder)
    raise ConfigError(f"These results have no figure {name!r}; they have {', '.join(names)}.")


def render(study: Study, contents: Mapping[Section, Sequence[Part]]) -> str:
    """The page: one file that needs no other, light and dark."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("amortes.bench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"svg": _svg, "data_url": _data_url, "strong": _strong}
    found = standings(study)
    runs = study.results.runs[["problem", "method", "seed", "iteration", "value", "regret"]]
    runs = runs.rename(columns={"iteration": "observations"})
    return environment.get_template("page.html").render(
        summary=what_was_run(study),
        compared=(found["verdict"] != "unknown").sum(),
        worse=list(losses(found)),
        contents={section: parts for section, parts in contents.items() if not _empty(parts)},
        gaps=[
            f"No section “{section.title}”: {' '.join(map(str, parts))}"
            for section, parts in contents.items()
            if _empty(parts)
        ]
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
        colours=COLOURS,
        floor=FLOOR,
        rule=RULE,
        seeds=SEEDS,
    )


def _empty(parts: Iterable[Part]) -> bool:
    """Whether there are but notes."""
    return all(isinstance(part, str) for part in parts)


def _svg(drawing: Drawing) -> markupsafe.Markup:
    return markupsafe.Markup(inline_svg(drawing.svg, drawing.name, drawing.caption))


def _data_url(csv: str) -> str:
    return f"data:text/csv;base64,{base64.b64encode(csv.encode()).decode()}"


def _strong(cell: str) -> markupsafe.Markup:
    bare = cell.removeprefix("**").removesuffix("**")
    return markupsafe.Markup("<strong>{}</strong>" if bare != cell else "{}").format(bare)


def _write(part: Drawing | Table, folder: Path) -> list[Path]:
    """Write the files of a figure or of a table."""
    if isinstance(part, Table):
        path = folder / "tables" / f"{part.name}.md"
        write_text(path, part.markdown())
        return [path]
    data = folder / "data" / f"{part.name}.csv"
    write_text(data, part.csv())
    return [*save(part.figure, part.svg, folder / "figures", part.name), data]
