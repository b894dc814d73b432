"""The web page: one file that needs no other, light and dark."""

import base64
import html
import json
from collections.abc import Sequence
from importlib.resources import files

from amortes.bench.report.coverage import missing
from amortes.bench.report.names import parse_method
from amortes.bench.report.published import SEEDS
from amortes.bench.report.standings import RULE
from amortes.bench.report.statistics import FLOOR
from amortes.bench.report.study import Drawing, Section, Study, join
from amortes.bench.report.style import COLOURS, inline_svg
from amortes.bench.report.summary import Summary, run_table, summarise
from amortes.bench.report.tables import Table, counted

FOLD = 12
"""Tables with more rows are folded."""
DEFINITIONS = (
    "Inference regret is the highest value of the function minus its noise-free value at the point "
    "the method recommends: the maximiser of its posterior mean. Methods without a model (random "
    "search, Optuna, SMAC) recommend their best observation where there is no noise, and with "
    "noise the maximiser of the posterior mean of a MAP GP fitted to their data. In pools without "
    "noise the best observation counts for all methods. Observations include the d initial ones, "
    f"which all methods of a seed share. Regrets are floored at {FLOOR:g} before log10; means and "
    "standard errors are over seeds and taken after the logarithm. A curve ends where fewer than "
    "half of its seeds go on. Ours is called better or worse than another model if the means "
    f"differ by {RULE}, which takes a larger difference the fewer seeds there are. Published "
    "curves are numbers read off the figures of Rakotoarison et al., α-PFN: Fast Entropy Search "
    f"via In-Context Learning (ICML 2026), means over {SEEDS} seeds, made with other seeds, "
    "implementations and machines."
)


def render(study: Study, sections: Sequence[Section]) -> str:
    """The page as HTML."""
    shown = [section for section in sections if not section.empty]
    absent = [section for section in sections if section.empty]
    links = "".join(f'<li><a href="#{s.name}">{html.escape(s.title)}</a></li>\n' for s in shown)
    body = "\n".join(_section(section, study) for section in shown)
    title = "amortes: benchmark report"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{_style()}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>Bayesian optimisation with amortised entropy search, beside Gaussian processes and other
methods. Everything below comes from the results of sweeps, and every number can be downloaded; the
command under a figure draws it again from RESULTS (and TIMED or TRACES), their folders.</p>
</header>
<nav aria-label="Sections"><ul>
<li><a href="#summary">Summary</a></li>
{links}<li><button id="theme" type="button" aria-label="Switch theme">Dark</button></li>
</ul></nav>
<main>
{_summary(study, summarise(study), absent)}
{body}
</main>
<footer>
<h2>Definitions</h2>
<p>{html.escape(DEFINITIONS)}</p>
{_weights(study)}{_environment(study)}
</footer>
<script>
{_resource("page.js")}
</script>
</body>
</html>
"""


def _summary(study: Study, summary: Summary, absent: Sequence[Section]) -> str:
    cards = "".join(
        f"<div><dt>{html.escape(one.number)}</dt><dd>{html.escape(one.meaning)}</dd></div>\n"
        for one in summary.headlines
    )
    worse = ""
    if summary.worse:
        title = f"Where ours is clearly worse: {len(summary.worse)} of {summary.compared}"
        worse = _fold(f"{title} comparisons", summary.worse)
    elif summary.compared:
        worse = (
            f"<p>In none of {counted(summary.compared, 'comparison')}, problem by problem, is ours "
            f"worse by {RULE}.</p>"
        )
    gaps = [
        *(f"No section “{section.title}”: {' '.join(section.notes)}" for section in absent),
        *missing(study.results),
    ]
    return f"""<section id="summary">
<h2>Summary</h2>
<p>{html.escape(summary.run)}</p>
<dl class="cards">
{cards}</dl>
{worse}
{_fold(f"What is missing: {len(gaps)} remarks", gaps) if gaps else ""}
<p>The end of every run: {_download(run_table(study))}</p>
</section>"""


def _section(section: Section, study: Study) -> str:
    sweeps = ""
    if section.name == "traces":
        sweeps = " --traces TRACES"
    elif section.name == "runtime" and study.timed is not None:
        sweeps = " --timed TIMED"
    figures = "\n".join(_figure(drawing, sweeps) for drawing in section.drawings)
    tables = "\n".join(_table(table) for table in section.tables)
    return f"""<section id="{section.name}">
<h2>{html.escape(section.title)}</h2>
<p class="reading">{html.escape(section.reading)}</p>
{figures}
{tables}
{_list(section.notes)}
</section>"""


def _figure(drawing: Drawing, sweeps: str) -> str:
    svg = inline_svg(drawing.svg, drawing.name, drawing.caption)
    command = f"amortes bench report RESULTS{sweeps} --figure {drawing.name}"
    return f"""<figure id="figure-{drawing.name}">
<div class="scroll">
{svg}
</div>
<figcaption>{html.escape(drawing.caption)}<br>
Data: {_download(drawing.data)} · <code>{command}</code></figcaption>
</figure>"""


def _table(table: Table) -> str:
    content = f'{table.html()}\n<p class="data">Data: {_download(table)}</p>'
    if len(table.rows) <= FOLD:
        return content
    return f"<details><summary>Table: {html.escape(table.title)}</summary>\n{content}</details>"


def _download(table: Table) -> str:
    data = base64.b64encode(table.csv().encode()).decode()
    name = f"{table.name}.csv"
    return f'<a download="{name}" href="data:text/csv;base64,{data}">{name}</a>'


def _weights(study: Study) -> str:
    lines = [
        f"{parse_method(method).label}: {join(digest or 'not recorded' for digest in digests)}"
        for method, digests in study.results.weights.items()
    ]
    return _fold("Weights: first digits of the SHA-256 of their files", lines) if lines else ""


def _environment(study: Study) -> str:
    found = study.results.environments
    if not found:
        return "<p>The results came without a description of the machine.</p>"
    text = "\n".join(json.dumps(one, indent=2, ensure_ascii=False) for one in found)
    return f"<details><summary>Environment</summary><pre>{html.escape(text)}</pre></details>"


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
    return f'<ul class="notes">\n{items}</ul>' if lines else ""


def _fold(title: str, lines: Sequence[str]) -> str:
    return f"<details><summary>{html.escape(title)}</summary>\n{_list(lines)}</details>"


def _style() -> str:
    css = _resource("page.css")
    for place, theme in enumerate(("LIGHT", "DARK")):
        variables = "\n".join(f"    --{name}: {pair[place]};" for name, pair in COLOURS.items())
        css = css.replace(f"/*COLOURS-{theme}*/", variables)
    return css


def _resource(name: str) -> str:
    return (files("amortes.bench.report") / name).read_text(encoding="utf-8").strip()
