import base64
import csv
import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from amortes.bench.report.load import Results
from amortes.bench.report.parts import Section, Study
from amortes.bench.report.write import (
    IN_ORDER,
    SECTIONS,
    coverage,
    missing,
    render,
    what_was_run,
    write_report,
)
from amortes.errors import ConfigError
from tests.bench.report.fake import make, results, run

SWEEP = results(
    *(run("branin", "jes", seed, [0.0] * n) for seed, n in ((0, 5), (1, 5), (2, 9))),
    run("branin", "fb-jes", 0, [0.0] * 3),
    *(run(f"hpob-5527-{task}", "jes", seed, [0.0] * 4) for task in (31, 9914) for seed in (0, 1)),
)


def test_the_table() -> None:
    (table,) = make(coverage, Study(SWEEP)).tables
    assert [*table.cells] == ["problem", "amortes JES", "fully Bayesian GP JES"]
    assert table.cells.to_numpy().tolist() == [
        ["Branin, 2-D", "3 × 5-9", "1 × 3"],
        ["HPO-B 5527, 8-D", "2 × 2 × 4", ""],
    ]


def test_failures_are_missing(study: Study) -> None:
    assert any("fb-mes, seed 0" in note for note in make(coverage, study).notes)


def test_weights_that_differ_are_told() -> None:
    runs = [run("branin", "jes", seed, [0.0], weights=digest) for seed, digest in enumerate("ab")]
    assert "jes: its runs were made with different weights (a, b)." in missing(results(*runs))


def test_what_was_run(study: Study) -> None:
    told = what_was_run(study)
    assert "amortes 0.1.0 (commit 0123456789)" in told
    assert " (2 synthetic; 1 synthetic, other noise; 1 LCBench; 2 HPO-B; 1 other)" in told
    changed = results(run("branin", "jes", 0, [0.0], commit="0123456789ab+"))
    assert "(commit 0123456789+)" in what_was_run(Study(changed))


VOID = {"meta", "br", "img"}


class Page(HTMLParser):
    """Elements of a page; fails on tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def rendered(study: Study, *sections: Section) -> str:
    return render(study, {section: [*section.make(study)] for section in sections})


@pytest.fixture(scope="module")
def report(study: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(study, folder)


@pytest.fixture(scope="module")
def page(report: tuple[Path, list[Path]]) -> Page:
    return Page((report[0] / "index.html").read_text(encoding="utf-8"))


def test_files(report: tuple[Path, list[Path]]) -> None:
    folder, written = report
    assert all(path.stat().st_size > 0 for path in written)
    assert {path for path in folder.rglob("*") if path.is_file()} == set(written)
    figures = {path.stem for path in written if path.suffix == ".png"}
    assert figures == {path.stem for path in written if path.suffix == ".svg"}
    assert figures == {path.stem for path in written if path.suffix == ".csv"}
    assert (folder / "tables" / "speed-up.md").read_text().startswith("**Speed-up")


def test_the_page_needs_nothing_else(page: Page) -> None:
    assert not page.all("link")
    assert all(str(image["src"]).startswith("data:image/svg+xml;") for image in page.all("img"))
    assert all("src" not in attributes for attributes in page.all("script"))
    links = [str(attributes["href"]) for attributes in page.all("a")]
    assert all(link.startswith(("#", "data:text/csv;base64,")) for link in links)


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    identifiers = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    inside = [str(a["href"])[1:] for a in page.all("a") if str(a["href"]).startswith("#")]
    assert set(inside) <= set(identifiers)
    sections = [attributes["id"] for attributes in page.all("section")]
    assert sections[0] == "summary"
    assert sections == inside
    assert len(page.all("img")) == len(page.all("figure")) == len(page.all("figcaption"))


def test_data_can_be_downloaded(page: Page) -> None:
    downloads = {str(a["download"]): str(a["href"]) for a in page.all("a") if "download" in a}
    assert {"regret.csv", "runtime.csv", "runs.csv", "standings.csv"} <= set(downloads)
    text = base64.b64decode(downloads["regret.csv"].partition(",")[2]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["panel"] for row in rows} == {"branin", "hartmann4"}
    assert all(float(row["mean"]) < 1 for row in rows)


def test_the_page_says_what_is_missing(page: Page) -> None:
    words = " ".join(page.words)
    assert "No section “Trace ablation”: Not given." in words
    assert "Failed: branin, fb-mes, seed 0: ValueError: of some kind" in words
    assert "floored at 1e-10" in words


def test_the_page_says_what_was_done(page: Page) -> None:
    words = " ".join(" ".join(page.words).split())
    assert "one results file" not in words
    assert "recommend their best observation where there is no noise, and with noise" in words
    assert "two standard errors" not in words
    assert "a paired t-test over common seeds (methods run here)" in words
    assert "Welch's t-test over seeds (published curves), two-sided at 95%" in words


def test_themes(report: tuple[Path, list[Path]], page: Page) -> None:
    text = (report[0] / "index.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert [attributes["id"] for attributes in page.all("button")] == ["theme"]
    assert page.all("html") == [{"lang": "en"}]


def test_text_from_the_results_is_escaped(study: Study) -> None:
    spoiled = Results(study.results.rows[:1], environments=[{"cpu": "</pre><b>&"}])
    assert not Page(rendered(Study(spoiled))).all("b")


LONE = Study(results(run("branin", "jes", 0, [0.0, 0.1], regret=[1.0, 0.9])))


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_every_section_stands_one_method_on_one_problem(section: Section) -> None:
    assert list(section.make(LONE))  # that nothing is there is said
    assert section.reading.count(". ") == 0  # one sentence says how to read it
    assert section.reading.endswith(".")


def test_names_are_unique(study: Study) -> None:
    whole = replace(study, traces=study.results)
    parts = [part for section in SECTIONS.values() for part in section.make(whole)]
    names = [part.name for part in parts if not isinstance(part, str)]
    assert len(set(names)) == len(names)
    assert len(SECTIONS) == len(IN_ORDER)


def test_one_section(study: Study, tmp_path: Path) -> None:
    written = write_report(study, tmp_path, "runtime")
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "figures/runtime.png",
        "figures/runtime.svg",
        "data/runtime.csv",
        "tables/speed-up.md",
    }
    with pytest.raises(ConfigError, match="nothing for the section 'traces'"):
        write_report(study, tmp_path, "traces")
    with pytest.raises(ConfigError, match=", ".join(SECTIONS)):
        write_report(study, tmp_path, "section 1")


def test_one_figure(study: Study, tmp_path: Path) -> None:
    written = write_report(study, tmp_path, figure="hpob-ranks")
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "figures/hpob-ranks.png",
        "figures/hpob-ranks.svg",
        "data/hpob-ranks.csv",
    ]
    with pytest.raises(ConfigError, match="no figure 'traces'; they have regret, regret-gp"):
        write_report(study, tmp_path, figure="traces")


def test_every_figure_says_how_to_draw_it_again(page: Page) -> None:
    words = " ".join(page.words)
    for attributes in page.all("figure"):
        name = str(attributes["id"]).removeprefix("figure-")
        assert f"amortes bench report RESULTS --figure {name}" in words


def test_weights_are_told() -> None:
    digests = {"jes": ["0a1b"], "mes": ["", "2c3d"]}
    runs = [
        run("branin", m, s, [0.0], weights=w) for m in digests for s, w in enumerate(digests[m])
    ]
    words = Page(rendered(Study(results(*runs)))).words
    assert "amortes JES: 0a1b" in words
    assert "amortes MES: not recorded, 2c3d" in words


def test_commands_name_the_sweeps_a_figure_needs(study: Study) -> None:
    alone = rendered(study, SECTIONS["runtime"])
    assert "bench report RESULTS --figure runtime" in alone
    timed = replace(study, timed=study.results)
    assert "bench report RESULTS --timed TIMED --figure runtime" in rendered(
        timed, SECTIONS["runtime"]
    )
