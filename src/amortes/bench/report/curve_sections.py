"""Sections with curves: of a group of problems, of ours with different weights, and of HPO-B."""

from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.problems.synthetic import NOISE_SD
from amortes.bench.report.curves import (
    MOST_BANDS,
    draw_panels,
    joined,
    overview,
    problem_curves,
    task_curves,
)
from amortes.bench.report.load import CELL, FLOOR, RUN, common_rows, in_order
from amortes.bench.report.names import (
    ACQUISITIONS,
    METRICS,
    MODELS,
    facts,
    group_of,
    label_of,
    metric_of,
    order_methods,
    panel_label,
    panel_of,
    parse_method,
)
from amortes.bench.report.parts import (
    Drawing,
    Part,
    Section,
    Study,
    Table,
    section,
    spread,
    text_of,
)
from amortes.bench.report.style import DASHED, Look, look
from amortes.optimiser.text import counted

CHECKPOINTS = (10, 25, 50, 100)
VARIANTS = [ACQUISITIONS[name].colour for name in ("pes", "mes", "jes", "ei", "logei")]
ALL_SPACES = "all spaces"


def _group_section(name: str, group: str, title: str, reading: str) -> Section:
    """All methods on a group of problems: an overview, ours beside GPs, and a table."""

    @section(name, title, reading)
    def parts(study: Study) -> Iterator[Part]:
        curves = study.curves_of(group)
        if curves.empty:
            yield "No runs."
            return
        both = joined(curves, study.published[~study.published["method"].str.contains("@")])
        if len(shown := overview(curves)):
            caption = "Our acquisitions beside what people use today."
            yield Drawing(name, caption, draw_panels(shown), shown)
        if len(in_grid(curves)):
            caption = "Each acquisition on our network (colour) and on Gaussian processes (fully "
            caption += "Bayesian grey, MAP brown)"
            if len(both) > len(curves):
                caption += "; dashed lines are the curves published for the α-PFN and its GP"
            yield Drawing(f"{name}-gp", f"{caption}.", draw_grid(both), both)
        yield checkpoint_table(name, title, both)

    return parts


regret = _group_section(
    "regret",
    "synthetic",
    "Regret on synthetic functions",
    f"Lower is better: lines are means over seeds of log10 inference regret (floored at {FLOOR:g}),"
    f" bands one standard error (not among more than {MOST_BANDS} methods), and the first d "
    "observations are shared random points.",
)
accuracy = _group_section(
    "accuracy",
    "lcbench",
    "Accuracy on LCBench",
    "Higher is better: lines are means over seeds of the accuracy at the recommended "
    "configuration, bands one standard error; axes start where the slowest method is after a fifth "
    "of the way.",
)
real = _group_section(
    "real",
    "other",
    "Real tasks",
    "Higher is better: lines are means over seeds of the value at the recommended configuration "
    "(of a scikit-learn model, the cross-validated score in brackets), bands one standard error; "
    "axes start where the slowest method is after a fifth of the way.",
)
noise = _group_section(
    "noise",
    "noise",
    "More noise",
    f"The same functions, noisier (above, the standard deviation of an observation is {NOISE_SD}); "
    "lines and bands are those of the section on synthetic functions.",
)


@section(
    "weights",
    "Other weights",
    "Lower is better: the same acquisition with the default weights and with others.",
)
def weights(study: Study) -> Iterator[Part]:
    """Ours with other weights, where an acquisition has some."""
    curves = study.curves_of("synthetic")
    curves = curves[facts(curves["method"])["model"] == "ours"]
    known = facts(curves["method"])
    varied = (known["weights"] != "").groupby([curves["panel"], known["acquisition"]])
    curves = curves[varied.transform("any").astype(bool)]
    return _variants("weights", "Other weights", "weights", curves, "default weights")


@section(
    "traces",
    "Trace ablation",
    "Lower is better: networks trained on traces that look like optimisation runs and on others, "
    "such as uniform points; dashed as published.",
)
def traces(study: Study) -> Iterator[Part]:
    """What training on traces that look like optimisation buys."""
    curves, published = study.curves[:0], study.published
    if study.traces is not None:
        curves = problem_curves(study.traces.rows)
        curves = curves[curves["panel"].map(group_of) == "synthetic"]
    known, used = facts(published["method"]), facts(curves["method"])["acquisition"]
    published = published[(known["model"] == "paper") & known["acquisition"].isin(used)]
    both, what = joined(curves, published), "what networks were trained on"
    return _variants("traces", "Trace ablation", what, both, "optimisation traces")


def _variants(name: str, title: str, what: str, curves: pd.DataFrame, plain: str) -> Iterator[Part]:
    """The default weights, which the legend calls `plain`, and others, dashed as published."""
    if curves.empty:
        yield "Not given."
        return
    known = facts(curves["method"])
    kinds = sorted(known["weights"].unique())

    def variant(name: str) -> Look:
        method = parse_method(name)
        return {
            "color": VARIANTS[kinds.index(method.weights) % len(VARIANTS)],
            "ls": DASHED if method.model == "paper" else "-",
            "lw": 1.6,
            "label": f"{MODELS[method.model]}, {method.weights or plain}",
        }

    figure = draw_panels(curves.assign(column=known["acquisition"]), looks=variant)
    yield Drawing(name, f"log10 inference regret; colours are {what}.", figure, curves)
    yield checkpoint_table(name, title, curves)


def in_grid(curves: pd.DataFrame) -> pd.DataFrame:
    """Those of methods that have a place in a grid: acquisitions of ours (default weights), GPs."""
    known = facts(curves["method"])
    return curves[(known["column"] != "") & (known["weights"] == "")]


def draw_grid(curves: pd.DataFrame) -> Figure:
    """Problems down, acquisitions that were run across: ours, the GPs, and what was published."""
    curves = in_grid(curves)
    curves = curves.assign(column=facts(curves["method"])["column"])
    run = curves["column"][~curves["method"].str.startswith("paper:")]

    def plain(name: str) -> Look:
        method = parse_method(name)  # a column has one acquisition: networks have its colour
        label = method.label if method.model in ("ours", "paper") else MODELS[method.model]
        return look(name) | {"marker": "", "label": label}

    return draw_panels(curves[curves["column"].isin(run)], looks=plain)


def checkpoint_table(name: str, title: str, curves: pd.DataFrame) -> Table:
    """Mean and standard error at a few iterations; the best of a column of a problem is bold."""
    rows = []
    metric = metric_of(curves["panel"].iloc[0])
    for panel, found in curves.groupby("panel", sort=False):
        methods = order_methods(found["method"])
        cells = {"problem": panel_label(str(panel)), "method": [*map(label_of, methods)]}
        for n in CHECKPOINTS:
            here = found[found["iteration"] == n].set_index("method").reindex(methods)
            best = here["mean"].min() if metric == "regret" else here["mean"].max()
            here = here.assign(best=here["mean"] == best)
            cells[f"n = {n}"] = text_of(here, 3 if metric == "value" else 2)
        rows.append(pd.DataFrame(cells))
    heading = f"{title}: {METRICS[metric]}, mean ± standard error after n observations"
    return Table(f"{name}-table", f"{heading}; bold is best", pd.concat(rows))


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
    problems = [name for name in study.results.problems if group_of(name) == "hpob"]
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
        yield Drawing("hpob-ranks", f"{caption}drawn.", draw(shown, "average rank"), shown)
    if len(shown := overview(pd.concat(shares), "fb")):
        figure = draw(shown, "share of regret", log=True)
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
