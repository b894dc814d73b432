"""Sections with curves of a family: regret, accuracy, real tasks."""

from collections.abc import Mapping

from amortes.bench.report.curve_figures import (
    MOST_BANDS,
    curve_table,
    draw_grid,
    draw_panels,
    drop_empty,
    in_grid,
)
from amortes.bench.report.curves import LABELS, Curve, Curves, higher_is_better, metric
from amortes.bench.report.names import in_overview, order_methods, panel_label, parse_method
from amortes.bench.report.statistics import FLOOR
from amortes.bench.report.study import Drawing, Section, Study
from amortes.bench.report.tables import Table, bold, with_error

CHECKPOINTS = (10, 25, 50, 100)


def regret_section(study: Study) -> Section:
    """Synthetic problems."""
    return _family_section(
        study,
        "synthetic",
        name="regret",
        title="Regret on synthetic functions",
        reading="Lower is better: lines are means over seeds of log10 inference regret (floored "
        f"at {FLOOR:g}), bands one standard error (not among more than {MOST_BANDS} methods), and "
        "the first d observations are shared random points.",
    )


def accuracy_section(study: Study) -> Section:
    """LCBench."""
    return _family_section(
        study,
        "lcbench",
        name="accuracy",
        title="Accuracy on LCBench",
        reading="Higher is better: lines are means over seeds of the accuracy at the recommended "
        "configuration, bands one standard error; axes start where the slowest method is after a "
        "fifth of the way.",
    )


def other_section(study: Study) -> Section:
    """Real tasks that run on the machine, and problems nobody here knows."""
    return _family_section(
        study,
        "other",
        name="real",
        title="Real tasks",
        reading="Higher is better: lines are means over seeds of the value at the recommended "
        "configuration (of a scikit-learn model, the cross-validated score in brackets), bands one "
        "standard error; axes start where the slowest method is after a fifth of the way.",
    )


def _family_section(study: Study, family: str, *, name: str, title: str, reading: str) -> Section:
    curves = study.curves_of(family)
    if not curves:
        return Section(name=name, title=title, reading=reading, notes=["No runs."])
    published = {p: study.published.curves.get(p, {}) for p in curves}
    kind = metric(next(iter(curves)))
    zoom = higher_is_better(kind)
    overview = drop_empty(
        {
            problem: {m: curve for m, curve in methods.items() if in_overview(m)}
            for problem, methods in curves.items()
        }
    )
    drawings = []
    if overview:
        drawings.append(
            Drawing(
                name=name,
                figure=draw_panels(overview, ylabel=LABELS[kind], zoom=zoom),
                caption="Our acquisitions beside what people use today.",
                data=curve_table(name, f"{title}: data", overview),
            )
        )
    both = {p: {**curves[p], **plain(published[p])} for p in curves}
    if any(in_grid(method) for methods in curves.values() for method in methods):
        drawings.append(
            Drawing(
                name=f"{name}-gp",
                figure=draw_grid(curves, published, ylabel=LABELS[kind], zoom=zoom),
                caption="Each acquisition on our network (colour) and on Gaussian processes (fully "
                "Bayesian grey, MAP brown)"
                + (
                    "; dashed lines are the curves published for the α-PFN and its GP."
                    if any(published.values())
                    else "."
                ),
                data=curve_table(f"{name}-gp", f"{title}: data with published curves", both),
            )
        )
    return Section(
        name=name,
        title=title,
        reading=reading,
        drawings=drawings,
        tables=[checkpoint_table(f"{name}-table", title, both)],
    )


def checkpoint_table(name: str, title: str, curves: Curves) -> Table:
    """Mean and standard error at a few iterations; the best of a column of a problem is bold."""
    rows = []
    for problem, methods in curves.items():
        digits = 3 if metric(problem) == "value" else 2
        pick = max if higher_is_better(metric(problem)) else min
        found = {m: [methods[m].at(step) for step in CHECKPOINTS] for m in order_methods(methods)}
        best = [
            pick((point[0] for point in points if point is not None), default=None)
            for points in zip(*found.values(), strict=True)
        ]
        for method, points in found.items():
            cells = ["" if point is None else with_error(*point, digits) for point in points]
            cells = [
                bold(cell) if point is not None and point[0] == top else cell
                for cell, point, top in zip(cells, points, best, strict=True)
            ]
            rows.append([panel_label(problem), parse_method(method).label, *cells])
    return Table(
        name=name,
        title=f"{title}: {_unit(curves)}, mean ± standard error after n observations; bold is best",
        columns=["problem", "method", *(f"n = {step}" for step in CHECKPOINTS)],
        rows=rows,
    )


def _unit(curves: Curves) -> str:
    return ", ".join(dict.fromkeys(LABELS[metric(problem)] for problem in curves))


def plain(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves of default weights."""
    return {name: curve for name, curve in curves.items() if not parse_method(name).weights}
