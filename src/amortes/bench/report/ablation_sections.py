"""Sections on what changes with the noise, the weights and the training traces."""

from amortes.bench.report.curve_figures import curve_table, draw_noise, draw_variants
from amortes.bench.report.curve_sections import checkpoint_table, plain
from amortes.bench.report.curves import LABELS, Curves, all_curves
from amortes.bench.report.names import PLAIN_NOISE, family, is_ours, noise_of, parse_method
from amortes.bench.report.results import Results
from amortes.bench.report.study import Drawing, Section, Study


def noise_section(study: Study) -> Section:
    """The same functions with more noise."""
    name, title = "noise", "Noise"
    reading = (
        f"Rows have more noise downwards (the first is {PLAIN_NOISE}) on the same axes: the less a "
        "curve rises from row to row, the less the noise hurts; dashed as published."
    )
    levels: dict[str, list[str]] = {}
    for problem in study.families.get("noise", []):
        base = noise_of(problem)[0]
        start = [base] if base in study.curves else []
        levels.setdefault(base, start).append(problem)
    for names in levels.values():
        names.sort(key=lambda problem: noise_of(problem)[1] or PLAIN_NOISE)
    levels = {base: [p for p in names if p in study.curves] for base, names in levels.items()}
    levels = {base: names for base, names in levels.items() if names}
    if not levels:
        return Section(name=name, title=title, reading=reading, notes=["No runs."])
    curves = {p: study.curves[p] for names in levels.values() for p in names}
    both = {p: {**curves[p], **plain(study.published.curves.get(p, {}))} for p in curves}
    return Section(
        name=name,
        title=title,
        reading=reading,
        drawings=[
            Drawing(
                name=name,
                figure=draw_noise(curves, study.published.curves, levels),
                caption="log10 inference regret of our acquisitions; noise is the standard "
                "deviation of an observation.",
                data=curve_table(name, "Noise: data", both),
            )
        ],
        tables=[checkpoint_table("noise-table", "Noise", both)],
    )


def variants_section(study: Study) -> Section:
    """Ours with other weights, from the results."""
    curves = {
        problem: {m: c for m, c in methods.items() if parse_method(m).model == "ours"}
        for problem, methods in study.curves.items()
        if family(problem) == "synthetic"
    }
    # An acquisition that has one kind of weights only shows nothing.
    varied = {
        parse_method(m).acquisition
        for methods in curves.values()
        for m in methods
        if not is_ours(m)
    }
    curves = {
        problem: {m: c for m, c in methods.items() if parse_method(m).acquisition in varied}
        for problem, methods in curves.items()
        if any(not is_ours(m) for m in methods)
    }
    return _variants(
        "weights",
        "Other weights",
        "Lower is better: the same acquisition with the default weights and with others.",
        curves,
        {},
        plain="default weights",
        caption="log10 inference regret; colours are weights.",
    )


def traces_section(study: Study) -> Section:
    """The trace ablation: what training on traces that look like optimisation buys."""
    results = study.traces or Results([])
    synthetic = [problem for problem in results.problems if family(problem) == "synthetic"]
    curves = all_curves(results, synthetic)
    used = {parse_method(m).acquisition for methods in curves.values() for m in methods}
    published = {
        problem: {
            name: curve
            for name, curve in methods.items()
            if parse_method(name).model == "paper" and parse_method(name).acquisition in used
        }
        for problem, methods in study.published.curves.items()
    }
    return _variants(
        "traces",
        "Trace ablation",
        "Lower is better: networks trained on traces that look like optimisation runs and on "
        "others, such as uniform points; dashed as published.",
        curves,
        published,
        plain="optimisation traces",
        caption="log10 inference regret; colours are what networks were trained on.",
    )


def _variants(
    name: str,
    title: str,
    reading: str,
    curves: Curves,
    published: Curves,
    *,
    plain: str,
    caption: str,
) -> Section:
    if not curves:
        return Section(name=name, title=title, reading=reading, notes=["Not given."])
    both = {problem: {**curves[problem], **published.get(problem, {})} for problem in curves}
    return Section(
        name=name,
        title=title,
        reading=reading,
        drawings=[
            Drawing(
                name=name,
                figure=draw_variants(curves, published, ylabel=LABELS["regret"], plain=plain),
                caption=caption,
                data=curve_table(name, f"{title}: data", both),
            )
        ],
        tables=[checkpoint_table(f"{name}-table", title, both)],
    )
