"""Sections with curves of a group of problems, and of what changes with noise and weights."""

import pandas as pd

from amortes.bench.problems.synthetic import NOISE_SD
from amortes.bench.report.curve_figures import (
    MOST_BANDS,
    draw_grid,
    draw_noise,
    draw_panels,
    draw_variants,
    in_grid,
)
from amortes.bench.report.curves import joined, of_methods, problem_curves
from amortes.bench.report.names import (
    METRIC_LABELS,
    METRICS,
    group_of,
    in_overview,
    metric_of,
    noise_of,
    order_methods,
    panel_label,
    parse_method,
)
from amortes.bench.report.parts import Drawing, Section, Study, Table
from amortes.bench.report.results import FLOOR
from amortes.bench.report.text import with_error

CHECKPOINTS = (10, 25, 50, 100)


def regret_section(study: Study) -> Section:
    """Synthetic problems."""
    return _group_section(study, "regret", "synthetic")


def accuracy_section(study: Study) -> Section:
    """LCBench."""
    return _group_section(study, "accuracy", "lcbench")


def real_section(study: Study) -> Section:
    """Real tasks that run on the machine, and problems nobody here knows."""
    return _group_section(study, "real", "other")


def _group_section(study: Study, name: str, group: str) -> Section:
    curves, words = study.curves_of(group), {"floor": FLOOR, "most_bands": MOST_BANDS}
    if curves.empty:
        return Section(name, notes=["No runs."], words=words)
    ylabel, zoom = METRIC_LABELS[METRICS[group]], METRICS[group] != "regret"
    both = joined(curves, of_methods(study.published.curves, has_default_weights))
    drawings = []
    if len(overview := of_methods(curves, in_overview)):
        figure = draw_panels(overview, ylabel=ylabel, zoom=zoom)
        drawings.append(Drawing(name, figure, overview))
    if len(of_methods(curves, in_grid)):
        figure = draw_grid(both, ylabel=ylabel, zoom=zoom)
        drawings.append(Drawing(f"{name}-gp", figure, both))
    return Section(name, drawings, [checkpoint_table(f"{name}-table", both)], words=words)


def has_default_weights(name: str) -> bool:
    """Whether a method names no weights."""
    return not parse_method(name).weights


def checkpoint_table(name: str, curves: pd.DataFrame) -> Table:
    """Mean and standard error at a few iterations; the best of a column of a problem is bold."""
    rows = []
    for panel, found in curves.groupby("panel", sort=False):
        metric = metric_of(str(panel))
        mean, error = (
            found.pivot(index="method", columns="iteration", values=c).reindex(columns=CHECKPOINTS)
            for c in ("mean", "standard_error")
        )
        best = mean.min() if metric == "regret" else mean.max()
        for method in order_methods(mean.index):
            row = [panel_label(str(panel)), parse_method(method).label]
            for n in CHECKPOINTS:
                cell = with_error(mean[n][method], error[n][method], 3 if metric == "value" else 2)
                row.append(f"**{cell}**" if mean[n][method] == best[n] else cell)
            rows.append(row)
    columns = ["problem", "method", *(f"n = {n}" for n in CHECKPOINTS)]
    return Table(name, pd.DataFrame(rows, columns=columns))


def noise_section(study: Study) -> Section:
    """The same functions with more noise."""
    words = {"noise": NOISE_SD}
    noisy = dict.fromkeys(study.curves_of("noise")["panel"])
    bases = dict.fromkeys(noise_of(problem)[0] for problem in noisy)
    shown = [p for p in dict.fromkeys(study.curves["panel"]) if p in noisy or p in bases]
    levels = {
        base: sorted(
            (problem for problem in shown if noise_of(problem)[0] == base),
            key=lambda problem: noise_of(problem)[1] or NOISE_SD,
        )
        for base in bases
    }
    if not levels:
        return Section("noise", notes=["No runs."], words=words)
    order = [problem for names in levels.values() for problem in names]
    curves = pd.concat([study.curves[study.curves["panel"] == problem] for problem in order])
    both = joined(curves, of_methods(study.published.curves, has_default_weights))
    drawing = Drawing("noise", draw_noise(both, levels), both)
    return Section("noise", [drawing], [checkpoint_table("noise-table", both)], words=words)


def weights_section(study: Study) -> Section:
    """Ours with other weights, from the results."""
    curves = study.curves_of("synthetic")
    curves = of_methods(curves, lambda name: parse_method(name).model == "ours")
    varied = of_methods(curves, lambda name: not has_default_weights(name))
    # An acquisition that has one kind of weights only shows nothing.
    acquisitions = {parse_method(name).acquisition for name in varied["method"]}
    curves = curves[curves["panel"].isin(varied["panel"])]
    curves = of_methods(curves, lambda name: parse_method(name).acquisition in acquisitions)
    return _variants("weights", curves, plain="default weights")


def traces_section(study: Study) -> Section:
    """The trace ablation: what training on traces that look like optimisation buys."""
    if study.traces is None:
        return _variants("traces", study.curves[:0], plain="")
    rows = study.traces.rows
    curves = problem_curves(rows[rows["problem"].map(group_of) == "synthetic"])
    used = {parse_method(name).acquisition for name in curves["method"]}
    published = of_methods(
        study.published.curves,
        lambda name: parse_method(name).model == "paper" and parse_method(name).acquisition in used,
    )
    return _variants("traces", joined(curves, published), plain="optimisation traces")


def _variants(name: str, curves: pd.DataFrame, *, plain: str) -> Section:
    if curves.empty:
        return Section(name, notes=["Not given."])
    figure = draw_variants(curves, ylabel=METRIC_LABELS["regret"], plain=plain)
    table = checkpoint_table(f"{name}-table", curves)
    return Section(name, [Drawing(name, figure, curves)], [table])
