"""The section on HPO-B: ranks and regret over iterations, averaged over the tasks of a space."""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from amortes.bench.report.curves import MOST_BANDS, draw_panels, overview, task_curves, titled
from amortes.bench.report.names import label_of, order_methods, panel_label, panel_of
from amortes.bench.report.parts import Drawing, Part, Study, Table, section, spread, text_of
from amortes.bench.report.results import CELL, RUN, common_rows, in_order
from amortes.bench.report.style import look
from amortes.optimiser.text import counted

ALL_SPACES = "all spaces"


def rank_curves(rows: pd.DataFrame, panel: str) -> pd.DataFrame:
    """Average rank of each method after n observations, for the n that all cells have."""
    scores = rows.pivot(index=[*CELL, "iteration"], columns="method", values="score").dropna()
    ranks = scores[order_methods(rows["method"])].rank(axis=1, ascending=False)
    ranks = ranks.melt(ignore_index=False, var_name="method", value_name="rank")
    return task_curves(ranks.reset_index(), "rank", panel)


def regret_curves(rows: pd.DataFrame, panel: str) -> tuple[pd.DataFrame, list[str]]:
    """Regret as a share of what the initial points leave, averaged over tasks; tasks left out.

    The unit of a task is the mean regret of all its runs at their first iteration. A task whose
    initial points always contain the best one says nothing and is left out.
    """
    unit = rows.drop_duplicates(RUN).groupby("problem", sort=False)["regret"].mean()
    units = rows["problem"].map(unit)
    known = rows.assign(share=rows["regret"] / units)[units > 0]
    return task_curves(known, "share", panel), list(unit.index[unit <= 0])


@section(
    "hpob",
    "HPO-B",
    "Lower is better everywhere: ranks among the methods of the figure (1 is best), and regret as "
    "a share of what the initial points leave, averaged over tasks; bands, if there are at most "
    f"{MOST_BANDS} methods, are one standard error over tasks.",
)
def hpob(study: Study) -> Iterator[Part]:
    """Of each space, and of all of them together if there are several."""
    problems = study.groups.get("hpob", [])
    spaces: dict[str, list[str]] = {}
    for problem in problems:
        spaces.setdefault(panel_of(problem), []).append(problem)
    if not spaces:
        yield "No runs."
        return
    if len(spaces) > 1:
        spaces[ALL_SPACES] = problems
    found, shares, heads, notes = [], [], {}, []
    for space, tasks in spaces.items():
        rows, left_out = common_rows(study.results, tasks)
        curves, known = regret_curves(rows, space)
        found.append(rank_curves(rows, space))
        shares.append(curves)
        heads[space] = f"{panel_label(space)} ({counted(rows['problem'].nunique(), 'task')})"
        if left_out:
            names = ", ".join(map(label_of, left_out))
            notes.append(f"{panel_label(space)}: left out, for too few runs: {names}.")
        if known:
            notes.append(
                f"{panel_label(space)}: without regret, as the initial points already contain the "
                f"best one: {', '.join(known)}."
            )
    draw = partial(draw_panels, looks=partial(look, apart=True))
    ranks = pd.concat(found)
    if len(shown := overview(ranks, "fb")):
        caption = "Average rank after so many observations; other methods are ranked too, but not "
        yield Drawing("hpob-ranks", f"{caption}drawn.", draw(titled(shown), "average rank"), shown)
    if len(shown := overview(pd.concat(shares), "fb")):
        figure = draw(titled(shown), "share of regret", log=True)
        caption = "Regret as a share of the initial one (1: nothing gained), on a logarithmic axis "
        yield Drawing("hpob-regret", f"{caption}cut at 0.001.", figure, shown)
    ends = ranks.groupby(["panel", "method"], sort=False).tail(1)
    ends = ends.sort_values("method", key=in_order, kind="stable")
    ends = ends.assign(best=ends["mean"] == ends.groupby("panel")["mean"].transform("min"))
    wide = spread(ends, ["method"], "panel", text_of(ends))
    wide = wide.reindex(columns=["method", *heads], fill_value="").rename(columns=heads)
    title = "Average rank after the last iteration (± standard error over tasks)"
    yield Table("hpob-table", title, wide.assign(method=wide["method"].map(label_of)))
    yield from notes
