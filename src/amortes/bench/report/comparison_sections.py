"""Sections that compare methods over many problems: win rates, ranks, standings."""

from collections.abc import Sequence

import numpy as np

from amortes.bench.report.comparison_figures import (
    draw_matrix,
    draw_ranks,
    draw_wins,
)
from amortes.bench.report.names import (
    COLUMNS,
    FAMILIES,
    MODELS,
    panel,
    panel_label,
    parse_method,
)
from amortes.bench.report.ranks import average_ranks
from amortes.bench.report.runtime import panels
from amortes.bench.report.standings import (
    BASELINE,
    HERE,
    PUBLISHED,
    RULE,
    Standing,
    standings,
    tallies,
)
from amortes.bench.report.study import Drawing, Section, Study, join
from amortes.bench.report.tables import Table, with_error
from amortes.bench.report.wins import gp_pairs, win_rate

ALL = "all problems"


def groups(study: Study) -> dict[str, list[str]]:
    """Families of problems by their titles, and all of them together if there are several."""
    found = {FAMILIES[name]: problems for name, problems in study.families.items()}
    return {**found, ALL: study.results.problems} if len(found) > 1 else found


def wins_section(study: Study) -> Section:
    """Win rates: ours against GPs, and everyone against everyone."""
    results, grouped, pairs = study.results, groups(study), gp_pairs(study.results)
    drawings, tables = [], []
    if pairs:
        rates = {
            group: {pair: win_rate(results, *pair, problems) for pair in pairs}
            for group, problems in grouped.items()
        }
        rates = {group: found for group, found in rates.items() if any(w.n for w in found.values())}
        data = Table(
            name="wins",
            title="Win rates of amortes over GPs by group",
            columns=["group", "ours", "theirs", "rate", "low", "high", "pairs"],
            rows=[
                [group, *pair, f"{w.rate:.4f}", *(f"{x:.4f}" for x in w.interval), str(w.n)]
                for group, found in rates.items()
                for pair, w in found.items()
                if w.n
            ],
        )
        if rates:
            drawings.append(
                Drawing(
                    name="wins",
                    figure=draw_wins(rates, _published_wins(study)),
                    caption="Share of the (problem, seed) pairs in which ours recommends the "
                    "better point; bars are Wilson's 95% intervals, which take pairs as "
                    "independent.",
                    data=data,
                )
            )
            tables.append(_wins_by_panel(study, pairs))
    if len(results.methods) > 1:
        drawings.append(_matrix(study))
    return Section(
        name="wins",
        title="Win rates",
        reading="Above one half is a win: two methods with the same seed, thus the same initial "
        "points, compared at the end of the shorter run; ties count one half.",
        drawings=drawings,
        tables=tables,
        notes=[]
        if pairs
        else [
            "Ours and a GP with the same acquisition were not both run, so there is nothing to "
            "compare."
        ],
    )


def _published_wins(study: Study) -> dict[str, dict[str, float]]:
    """Last win rate of the alpha-PFN over the GP, averaged over the panels of a group."""
    found: dict[str, dict[str, float]] = {}
    for group, problems in groups(study).items():
        names = {panel(problem) for problem in problems} & study.published.wins.keys()
        for acquisition in COLUMNS:
            ends = [
                float(curves[acquisition].mean[-1])
                for name in sorted(names)
                if acquisition in (curves := study.published.wins[name])
            ]
            if ends:
                found.setdefault(group, {})[acquisition] = float(np.mean(ends))
    return found


def _wins_by_panel(study: Study, pairs: list[tuple[str, str]]) -> Table:
    rows = []
    for name, problems in panels(study.results).items():
        for ours, theirs in pairs:
            wins = win_rate(study.results, ours, theirs, problems)
            if wins.n:
                labels = (parse_method(m).label for m in (ours, theirs))
                rows.append([panel_label(name), *labels, wins.text])
    return Table(
        name="wins-table",
        title="Win rate [95% interval] (pairs) of ours over GPs",
        columns=["problem", "ours", "against", "win rate"],
        rows=rows,
    )


def _matrix(study: Study) -> Drawing:
    results = study.results
    methods = results.methods
    rate = np.full((len(methods), len(methods)), np.nan)
    rows = []
    for i, ours in enumerate(methods):
        for j, theirs in enumerate(methods):
            wins = win_rate(results, ours, theirs, results.problems)
            if i != j and wins.n:
                rate[i, j] = wins.rate
                low, high = wins.interval
                rows.append([ours, theirs, f"{wins.rate:.4f}", f"{low:.4f}", f"{high:.4f}",
                             str(wins.n)])  # fmt: skip
    return Drawing(
        name="win-matrix",
        figure=draw_matrix(methods, rate),
        caption="All pairs over all problems that both were run on; blue rows win, and an empty "
        "cell means no common run.",
        data=Table(
            name="win-matrix",
            title="Win rates of all pairs",
            columns=["row", "column", "rate", "low", "high", "pairs"],
            rows=rows,
        ),
    )


def ranks_section(study: Study) -> Section:
    """Average ranks by family."""
    ranks = {group: average_ranks(study.results, found) for group, found in groups(study).items()}
    ranks = {group: one for group, one in ranks.items() if len(one.mean) > 1}
    reading = (
        "Lower is better: rank among the methods of a column at the end of the runs, averaged over "
        "seeds and then over tasks, with the standard error over tasks."
    )
    if not ranks:
        notes = ["No two methods share a run."]
        return Section(name="ranks", title="Average ranks", reading=reading, notes=notes)
    methods = dict.fromkeys(method for one in ranks.values() for method in one.mean)
    table = Table(
        name="ranks-table",
        title="Average rank ± standard error (1 is best)",
        columns=["method", *(f"{group} ({len(one.mean)} methods)" for group, one in ranks.items())],
        rows=[
            [
                parse_method(method).label,
                *(
                    with_error(one.mean[method], one.error[method]) if method in one.mean else ""
                    for one in ranks.values()
                ),
            ]
            for method in methods
        ],
    )
    return Section(
        name="ranks",
        title="Average ranks",
        reading=reading,
        drawings=[
            Drawing(
                name="ranks",
                figure=draw_ranks(ranks),
                caption="Average ranks by group of problems; a method without a mark was run "
                "too little there.",
                data=Table(
                    name="ranks",
                    title="Average ranks: data",
                    columns=["group", "method", "rank", "standard_error", "methods", "tasks"],
                    rows=[
                        [
                            group,
                            method,
                            f"{mean:.4f}",
                            "" if np.isnan(one.error[method]) else f"{one.error[method]:.4f}",
                            str(len(one.mean)),
                            str(len({problem for problem, _ in one.field.cells})),
                        ]
                        for group, one in ranks.items()
                        for method, mean in one.mean.items()
                    ],
                ),
            )
        ],
        tables=[table],
        notes=[
            f"{group}: not ranked, for too few runs: "
            f"{join(parse_method(m).label for m in one.field.left_out)}."
            for group, one in ranks.items()
            if one.field.left_out
        ],
    )


def standings_section(study: Study) -> Section:
    """Problem by problem beside GPs and the paper, and the counts."""
    found = standings(study)
    baseline = f"{parse_method(BASELINE).label} run here"
    tables = [
        Table(
            name="standings-counts",
            title="Better : level : worse than the same acquisition on other models, counting "
            f"problems and acquisitions; for comparison, {baseline} beside published EI",
            columns=["rival", "problems", "test", "ours", "of these, EI or LogEI", baseline],
            rows=[
                [MODELS[one.model], FAMILIES[one.family], one.test, one.ours, one.ei, one.baseline]
                for one in tallies(study)
            ],
        ),
        _standings_table(
            "common-seeds",
            "Ours beside GPs run here, on the seeds that both have, with paired gains",
            [one for one in found if one.model in HERE],
        ),
        _standings_table(
            "standings",
            "Ours beside published curves",
            [one for one in found if one.model in PUBLISHED],
        ),
    ]
    return Section(
        name="standings",
        title="Problem by problem",
        reading="Each row compares one acquisition on our network with the same one on another "
        "model at the last iteration both have; a positive gain is in our favour, and the verdict "
        f"is level unless the means differ by {RULE}.",
        tables=[table for table in tables if table.rows],
        notes=[] if found else ["Nothing to compare with."],
    )


def _standings_table(name: str, title: str, found: Sequence[Standing]) -> Table:
    return Table(
        name=name,
        title=f"{title}: log10 inference regret, or accuracy (%) on LCBench, after n observations, "
        "mean and gain ± standard error",
        columns=[
            *("problem", "acquisition", "rival", "n", "our seeds", "ours", "rival's", "gain"),
            "verdict",
        ],
        rows=[
            [
                panel_label(one.problem),
                parse_method(one.ours).label.removeprefix("amortes "),
                MODELS[one.model],
                str(one.iteration),
                f"{one.our.seeds:.0f}",
                with_error(one.our.mean, one.our.error),
                with_error(one.their.mean, one.their.error),
                ("+" if one.gain >= 0 else "") + with_error(one.gain, one.error),
                one.verdict,
            ]
            for one in found
        ],
    )
