"""The section on HPO-B: ranks and regret over iterations, averaged over the tasks of a space."""

from collections.abc import Mapping

import pandas as pd

from amortes.bench.report.comparisons import Field, field_of, rank_curves, regret_curves
from amortes.bench.report.curve_figures import MOST_BANDS, draw_panels
from amortes.bench.report.curves import of_methods
from amortes.bench.report.names import (
    ALL_SPACES,
    in_overview,
    order_methods,
    panel_label,
    panel_of,
    parse_method,
)
from amortes.bench.report.parts import Drawing, Section, Study, Table
from amortes.bench.report.style import look_apart
from amortes.bench.report.text import counted, with_error


def hpob_section(study: Study) -> Section:
    """HPO-B: ranks and regret over iterations."""
    problems, words = study.groups.get("hpob", []), {"most_bands": MOST_BANDS}
    if not problems:
        return Section("hpob", notes=["No runs."], words=words)
    spaces: dict[str, list[str]] = {}
    for problem in problems:
        spaces.setdefault(panel_of(problem), []).append(problem)
    if len(spaces) > 1:
        spaces[ALL_SPACES] = problems
    fields = {space: field_of(study.results, tasks) for space, tasks in spaces.items()}
    ranks = pd.concat(rank_curves(study.results, field, s) for s, field in fields.items())
    shares = {s: regret_curves(study.results, field, s) for s, field in fields.items()}
    drawings = []
    if len(popular := of_methods(ranks, _popular)):
        figure = draw_panels(popular, ylabel="average rank", looks=look_apart)
        drawings.append(Drawing("hpob-ranks", figure, popular))
    if len(popular := of_methods(pd.concat(c for c, _ in shares.values()), _popular)):
        figure = draw_panels(popular, ylabel="share of regret", log=True, looks=look_apart)
        drawings.append(Drawing("hpob-regret", figure, popular))
    if len(published := study.published.ranks):
        here = published[published["panel"].isin(spaces)]
        published = here if len(here) else published
        figure = draw_panels(published, ylabel="average rank", looks=look_apart)
        drawings.append(Drawing("hpob-ranks-published", figure, published))
    notes = [
        f"{panel_label(space)}: left out, for too few runs: {labels(field.left_out)}."
        for space, field in fields.items()
        if field.left_out
    ]
    notes += [
        f"{panel_label(space)}: without regret, as the initial points already contain the best "
        f"one: {', '.join(tasks)}."
        for space, (_, tasks) in shares.items()
        if tasks
    ]
    return Section("hpob", drawings, [_rank_table(ranks, fields)], notes, words)


def labels(methods: list[str]) -> str:
    """Methods in a sentence."""
    return ", ".join(parse_method(method).label for method in methods)


def _popular(name: str) -> bool:
    """What fits into one figure: ours, other libraries, and the fully Bayesian GP."""
    return in_overview(name) or parse_method(name).model == "fb"


def _rank_table(ranks: pd.DataFrame, fields: Mapping[str, Field]) -> Table:
    ends = ranks.groupby(["panel", "method"], sort=False).tail(1)
    best = ends.groupby("panel")["mean"].transform("min")
    numbers = zip(ends["mean"], ends["standard_error"], ends["mean"] == best, strict=True)
    cells = [f"**{with_error(*c)}**" if top else with_error(*c) for *c, top in numbers]
    wide = ends.assign(cell=cells).pivot(index="method", columns="panel", values="cell").fillna("")
    wide = wide.reindex(index=order_methods(wide.index), columns=list(fields)).fillna("")
    wide.columns = pd.Index(
        f"{panel_label(s)} ({counted(field.tasks, 'task')})" for s, field in fields.items()
    )
    wide.insert(0, "method", [parse_method(method).label for method in wide.index])
    return Table("hpob-table", wide)
