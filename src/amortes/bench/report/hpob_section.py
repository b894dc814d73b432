"""The section on HPO-B: ranks and regret over iterations, averaged over tasks."""

from collections.abc import Iterable, Mapping

from amortes.bench.report.curve_figures import MOST_BANDS, curve_table, draw_panels, drop_empty
from amortes.bench.report.curves import Curves
from amortes.bench.report.names import in_overview, order_methods, panel, panel_label, parse_method
from amortes.bench.report.published import Published
from amortes.bench.report.ranks import Field, normalised_regret, rank_curves
from amortes.bench.report.results import Results
from amortes.bench.report.study import Drawing, Section, Study, join
from amortes.bench.report.style import look_apart
from amortes.bench.report.tables import Table, bold, counted, with_error

ALL = "all spaces"


def hpob_section(study: Study) -> Section:
    """HPO-B: ranks and regret over iterations."""
    name, title = "hpob", "HPO-B"
    reading = (
        "Lower is better everywhere: ranks among the methods of the figure (1 is best), and "
        "regret as a share of what the initial points leave, averaged over tasks; bands, if "
        f"there are at most {MOST_BANDS} methods, are one standard error over tasks."
    )
    problems = study.families.get("hpob", [])
    if not problems:
        return Section(name=name, title=title, reading=reading, notes=["No runs."])
    spaces = _spaces(problems)
    ranks, fields = _ranks(study.results, spaces)
    drawings = []
    if popular := _popular(ranks):
        caption = (
            "Average rank after so many observations; other methods are ranked too, but not drawn."
        )
        drawings.append(_panels("hpob-ranks", popular, "average rank", caption))
    shares, left_out = {}, {}
    for space, tasks in spaces.items():
        shares[space], left_out[space] = normalised_regret(study.results, tasks)
    if popular := _popular(shares):
        caption = (
            "Regret as a share of the initial one (1: nothing gained), on a logarithmic axis cut "
            "at 0.001."
        )
        drawings.append(_panels("hpob-regret", popular, "share of regret", caption, log=True))
    if study.published.ranks:
        drawings.append(_published_ranks(study.published, spaces))
    return Section(
        name=name,
        title=title,
        reading=reading,
        drawings=drawings,
        tables=[_rank_table(ranks, fields)],
        notes=[*_field_notes(fields), *_regret_notes(left_out)],
    )


def _spaces(problems: Iterable[str]) -> dict[str, list[str]]:
    spaces: dict[str, list[str]] = {}
    for problem in problems:
        spaces.setdefault(panel(problem), []).append(problem)
    if len(spaces) > 1:
        spaces[ALL] = list(problems)
    return spaces


def _ranks(results: Results, spaces: Mapping[str, list[str]]) -> tuple[Curves, dict[str, Field]]:
    curves, fields = {}, {}
    for space, tasks in spaces.items():
        curves[space], fields[space] = rank_curves(results, tasks)
    return curves, fields


def _panels(name: str, curves: Curves, ylabel: str, caption: str, *, log: bool = False) -> Drawing:
    return Drawing(
        name=name,
        figure=draw_panels(curves, ylabel=ylabel, log=log, looks=look_apart),
        caption=caption,
        data=curve_table(name, f"{caption} Data", curves),
    )


def _popular(curves: Curves) -> Curves:
    """What fits into one figure: ours, other libraries, and the fully Bayesian GP."""
    return drop_empty(
        {
            space: {
                name: curve
                for name, curve in methods.items()
                if in_overview(name) or parse_method(name).model == "fb"
            }
            for space, methods in curves.items()
        }
    )


def _published_ranks(published: Published, spaces: Iterable[str]) -> Drawing:
    ranks = {space: published.ranks[space] for space in spaces if space in published.ranks}
    return _panels(
        "hpob-ranks-published",
        ranks or published.ranks,
        "average rank",
        "As published: ranks among the paper's eight methods on more data sets per space; ranks "
        "depend on who takes part, so compare the order rather than the numbers.",
    )


def _rank_table(ranks: Curves, fields: Mapping[str, Field]) -> Table:
    methods = order_methods(m for curves in ranks.values() for m in curves)
    ends = {
        space: {
            m: (float(c.mean[-1]), float(c.error[-1])) for m, c in curves.items() if len(c.mean)
        }
        for space, curves in ranks.items()
    }
    rows = []
    for method in methods:
        cells = [parse_method(method).label]
        for found in ends.values():
            point = found.get(method)
            cell = "" if point is None else with_error(*point)
            best = min((mean for mean, _ in found.values()), default=None)
            cells.append(bold(cell) if point is not None and point[0] == best else cell)
        rows.append(cells)
    tasks = {space: len({problem for problem, _ in field.cells}) for space, field in fields.items()}
    return Table(
        name="hpob-table",
        title="Average rank after the last iteration (± standard error over tasks)",
        columns=["method", *(f"{panel_label(s)} ({counted(tasks[s], 'task')})" for s in ranks)],
        rows=rows,
    )


def _field_notes(fields: Mapping[str, Field]) -> list[str]:
    return [
        f"{panel_label(space)}: left out, for too few runs: "
        f"{join(parse_method(m).label for m in field.left_out)}."
        for space, field in fields.items()
        if field.left_out
    ]


def _regret_notes(left_out: Mapping[str, list[str]]) -> list[str]:
    return [
        f"{panel_label(space)}: without regret, as the initial points already contain the best "
        f"one: {join(tasks)}."
        for space, tasks in left_out.items()
        if tasks
    ]
