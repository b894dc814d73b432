"""Sections with curves of a group of problems, and of ours with different weights."""

from collections.abc import Callable, Iterator

import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.problems.synthetic import NOISE_SD
from amortes.bench.report.curves import (
    MOST_BANDS,
    draw_panels,
    joined,
    overview,
    problem_curves,
    titled,
)
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
    parse_method,
)
from amortes.bench.report.parts import Drawing, Part, Section, Study, Table, section, text_of
from amortes.bench.report.results import FLOOR
from amortes.bench.report.style import DASHED, LIGHT, Look, look

CHECKPOINTS = (10, 25, 50, 100)
VARIANTS = ("blue", "vermillion", "green", "amber", "purple")


def _group_section(name: str, group: str, title: str, reading: str) -> Section:
    """All methods on a group of problems: an overview, ours beside GPs, and a table."""

    @section(name, title, reading)
    def parts(study: Study) -> Iterator[Part]:
        curves = study.curves_of(group)
        if curves.empty:
            yield "No runs."
            return
        both = joined(curves, untraced(study.published))
        if len(shown := overview(curves)):
            caption = "Our acquisitions beside what people use today."
            yield Drawing(name, caption, draw_panels(titled(shown)), shown)
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

    def variant(method: str) -> Look:
        colour = VARIANTS[kinds.index(parse_method(method).weights) % len(VARIANTS)]
        dashed = parse_method(method).model == "paper"
        return {"color": LIGHT[colour], "ls": DASHED if dashed else "-", "lw": 1.6}

    def label(method: str) -> str:
        return f"{MODELS[parse_method(method).model]}, {parse_method(method).weights or plain}"

    figure = _draw_lattice(curves.assign(column=known["acquisition"]), variant, label)
    yield Drawing(name, f"log10 inference regret; colours are {what}.", figure, curves)
    yield checkpoint_table(name, title, curves)


def untraced(published: pd.DataFrame) -> pd.DataFrame:
    """Published curves without those of the trace ablation."""
    return published[~published["method"].str.contains("@")]


def in_grid(curves: pd.DataFrame) -> pd.DataFrame:
    """Those of methods that have a place in a grid: acquisitions of ours (default weights), GPs."""
    known = facts(curves["method"])
    return curves[(known["column"] != "") & (known["weights"] == "")]


def draw_grid(curves: pd.DataFrame) -> Figure:
    """Problems down, acquisitions that were run across: ours, the GPs, and what was published."""
    curves = in_grid(curves)
    curves = curves.assign(column=facts(curves["method"])["column"])
    run = curves["column"][~curves["method"].str.startswith("paper:")]

    def label(name: str) -> str:
        method = parse_method(name)  # networks have the colour of their column
        return method.label if method.model in ("ours", "paper") else MODELS[method.model]

    def plain(name: str) -> Look:
        return look(name) | {"marker": ""}  # a column has one acquisition

    return _draw_lattice(curves[curves["column"].isin(run)], plain, label)


def _draw_lattice(
    curves: pd.DataFrame,
    looks: Callable[[str], Look],
    labels: Callable[[str], str],
) -> Figure:
    """Problems down and acquisitions across; if there is but one, as many as fit."""
    columns = [name for name in ACQUISITIONS if name in set(curves["column"])]
    cells = [
        (f"{panel_label(str(panel))}\n{ACQUISITIONS[name]}", found[found["column"] == name])
        for panel, found in curves.groupby("panel", sort=False)
        for name in columns
    ]
    several = len(columns) > 1
    across = len(columns) if several else 3
    return draw_panels(cells, across=across, share=several, looks=looks, labels=labels)


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
