"""Sections that compare methods over many problems: win rates and ranks."""

import pandas as pd

from amortes.bench.report.comparison_figures import draw_matrix, draw_ranks, draw_wins
from amortes.bench.report.comparisons import average_ranks, field_of, gp_pairs, of_pairs
from amortes.bench.report.hpob import labels
from amortes.bench.report.names import COLUMNS, panel_label, panel_of, parse_method
from amortes.bench.report.parts import Drawing, Section, Study, Table, records
from amortes.bench.report.statistics import with_rates
from amortes.bench.report.text import with_error

PAIR = ["ours", "theirs"]


def wins_section(study: Study) -> Section:
    """Win rates: ours against GPs, and everyone against everyone."""
    drawings, tables = [], []
    pairs = gp_pairs(study.results.methods)
    if len(found := of_pairs(study.wins, pairs)):
        grouped = pd.concat(
            _rates(found[found["problem"].isin(problems)], PAIR).assign(group=group)
            for group, problems in study.titled_groups.items()
        )
        data = grouped[["group", *PAIR, "rate", "low", "high", "pairs"]]
        figure = draw_wins(data, _published_wins(study))
        drawings.append(Drawing("wins", figure, data, "%.4f"))
        by_panel = _rates(found.assign(panel=found["problem"].map(panel_of)), ["panel", *PAIR])
        order = {p: i for i, p in enumerate(dict.fromkeys(map(panel_of, study.results.problems)))}
        by_panel = by_panel.sort_values("panel", key=lambda p: p.map(order), kind="stable")
        cells = {
            "problem": by_panel["panel"].map(panel_label),
            "ours": by_panel["ours"].map(lambda name: parse_method(name).label),
            "against": by_panel["theirs"].map(lambda name: parse_method(name).label),
            "win rate": [
                f"{one.rate:.2f} [{one.low:.2f}, {one.high:.2f}] ({one.pairs})"
                for one in records(by_panel)
            ],
        }
        tables.append(Table("wins-table", pd.DataFrame(cells)))
    if len(methods := study.results.methods) > 1:
        order = {name: place for place, name in enumerate(methods)}
        matrix = _rates(study.wins, PAIR).sort_values(PAIR, key=lambda names: names.map(order))
        data = matrix.rename(columns={"ours": "row", "theirs": "column"})
        data = data[["row", "column", "rate", "low", "high", "pairs"]]
        drawings.append(Drawing("win-matrix", draw_matrix(methods, matrix), data, "%.4f"))
    nothing = "Ours and a GP with the same acquisition were not both run, so there is nothing to "
    return Section("wins", drawings, tables, [] if pairs else [f"{nothing}compare."])


def _rates(wins: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    sums = wins.groupby(keys, sort=False)[["points", "pairs"]].sum().reset_index()
    return with_rates(sums)


def _published_wins(study: Study) -> dict[tuple[str, str], float]:
    """Last win rate of the alpha-PFN over the GP, averaged over the panels of a group."""
    ends = study.published.wins.groupby(["panel", "method"], as_index=False).tail(1)
    found: dict[tuple[str, str], float] = {}
    for group, problems in study.titled_groups.items():
        here = ends[ends["panel"].isin(set(map(panel_of, problems)))]
        means = here.groupby("method")["mean"].mean()
        found |= {(group, name): means[name] for name in set(COLUMNS.values()) if name in means}
    return found


def ranks_section(study: Study) -> Section:
    """Average ranks by group of problems."""
    fields = {g: field_of(study.results, found) for g, found in study.titled_groups.items()}
    fields = {group: field for group, field in fields.items() if len(field.methods) > 1}
    if not fields:
        return Section("ranks", notes=["No two methods share a run."])
    ranks = pd.concat(
        average_ranks(study.results, field)
        .rename_axis("method")
        .reset_index()
        .assign(group=group, methods=len(field.methods), tasks=field.tasks)
        for group, field in fields.items()
    )
    data = ranks[["group", "method", "rank", "standard_error", "methods", "tasks"]]
    numbers = zip(ranks["rank"], ranks["standard_error"], strict=True)
    wide = ranks.assign(cell=[with_error(*pair) for pair in numbers]).pivot(
        index="method", columns="group", values="cell"
    )
    wide = wide.reindex(index=list(dict.fromkeys(ranks["method"])), columns=list(fields)).fillna("")
    wide.columns = pd.Index(f"{g} ({len(field.methods)} methods)" for g, field in fields.items())
    wide.insert(0, "method", [parse_method(method).label for method in wide.index])
    notes = [
        f"{group}: not ranked, for too few runs: {labels(field.left_out)}."
        for group, field in fields.items()
        if field.left_out
    ]
    drawing = Drawing("ranks", draw_ranks(data), data, "%.4f")
    return Section("ranks", [drawing], [Table("ranks-table", wide)], notes)
