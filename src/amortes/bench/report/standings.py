"""Ours beside each rival with the same acquisition, problem by problem, and how often it is better.

    t = gain / its standard error,   gain: ours - theirs, signed so that positive is better for us

Better or worse is what a t-test calls different, two-sided at 95%: |t| beyond the quantile of
Student's t. All else is level.

Methods run here share initial points and noise with ours, seed by seed. They are compared on the
seeds that both have, by a paired test: the error is that of the differences, one for each seed, and
the quantile 2.3 with ten seeds and 4.3 with three. Published curves come from other seeds and
machines. There all our seeds count, and Welch's test takes the two sides as independent.

Ours may beat a published curve for reasons that have nothing to do with its network. So families of
problems are counted apart, and a plain GP that was run here stands beside the same curves.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from scipy.stats import sem

from amortes.bench.report.names import (
    GROUPS,
    MODELS,
    group_of,
    metric_of,
    panel_label,
    parse_method,
    same_acquisition,
)
from amortes.bench.report.parts import Section, Study, Table, records
from amortes.bench.report.statistics import student, welch
from amortes.bench.report.text import with_error

COMPARED = ("synthetic", "noise", "lcbench")
HERE = ("fb", "map")
PUBLISHED = ("paper", "paper:fb")
BASELINE = "map-logei"
PAIRED = "a paired t-test over common seeds"
WELCH = "Welch's t-test over seeds"
RULE = f"{PAIRED} (methods run here) or {WELCH} (published curves), two-sided at 95%"
VERDICTS = ("better", "level", "worse")
STANDING = [
    *("problem", "group", "ours", "theirs", "model", "iteration", "seeds", "our_mean"),
    *("our_error", "their_mean", "their_error", "gain", "error", "clear", "verdict"),
]


def standings(study: Study) -> pd.DataFrame:
    """All comparisons of ours that the results and the published curves allow.

    Each is after as many observations as both sides have. `gain` is positive if ours is better, in
    units of the metric, `error` its standard error, `clear` the |t| above which means count as
    different; the verdict is better, level or worse, or unknown with a single seed.
    """
    return _standings(study, lambda name: parse_method(name).is_ours, (*HERE, *PUBLISHED))


def tallies(study: Study) -> pd.DataFrame:
    """Counts `better : level : worse` for each rival and group, where there is something to count.

    `ours` is with all acquisitions, `ei` those with EI or LogEI, `baseline` that of BASELINE beside
    a published EI; empty if there are none.
    """
    ours = standings(study)
    baseline = _standings(study, BASELINE.__eq__, PUBLISHED)
    is_ei = ours["ours"].map(lambda name: parse_method(name).column == "ei").astype(bool)
    rows = []
    for model in (*HERE, *PUBLISHED):
        for group in COMPARED:
            counts = [
                _count(found[(found["model"] == model) & (found["group"] == group)])
                for found in (ours, ours[is_ei], baseline)
            ]
            if counts[0]:
                rows.append([model, group, PAIRED if model in HERE else WELCH, *counts])
    return pd.DataFrame(rows, columns=["model", "group", "test", "ours", "ei", "baseline"])


def _count(found: pd.DataFrame) -> str:
    counts = found["verdict"].value_counts()
    return " : ".join(str(counts.get(verdict, 0)) for verdict in VERDICTS) if len(found) else ""


def _standings(study: Study, chosen: Callable[[str], bool], models: Sequence[str]) -> pd.DataFrame:
    """Each chosen method beside each model with its acquisition."""
    found = []
    published = study.published.curves
    for problem, here in study.curves_of(*COMPARED).groupby("panel", sort=False)["method"]:
        names = [*here.unique(), *published["method"][published["panel"] == problem].unique()]
        for ours in filter(chosen, here.unique()):
            for model in models:
                theirs = same_acquisition(names, parse_method(ours), model)
                if theirs is not None:
                    compare = _paired if model in HERE else _independent
                    found.append(compare(study, str(problem), ours, theirs))
    return pd.DataFrame([one for one in found if one is not None], columns=STANDING)


def _paired(study: Study, problem: str, ours: str, theirs: str) -> dict[str, Any] | None:
    """On the seeds that both have, after as many observations as all of these runs have."""
    rows = study.results.rows
    rows = rows[(rows["problem"] == problem) & rows["method"].isin([ours, theirs])]
    wide = rows.pivot(index="iteration", columns=["method", "seed"], values="metric")
    common = wide[ours].columns.intersection(wide[theirs].columns)
    both = wide[[(method, seed) for method in (ours, theirs) for seed in common]].dropna()
    if both.empty or common.empty:
        return None
    last = both.iloc[-1].unstack("seed")
    a, b = last.loc[ours], last.loc[theirs]
    sides = (a.mean(), a.sem(), b.mean(), b.sem())
    difference = (a - b).to_numpy(float)
    return _standing(
        (problem, ours, theirs, both.index[-1], len(common), *sides),
        float(difference.mean()),
        float(sem(difference)) if len(common) > 1 else math.nan,
        student(len(common) - 1),
    )


def _independent(study: Study, problem: str, ours: str, theirs: str) -> dict[str, Any] | None:
    """With all our seeds, at the last iteration that both curves have."""
    (a, b) = (
        curves[(curves["panel"] == problem) & (curves["method"] == method)].set_index("iteration")
        for curves, method in ((study.curves, ours), (study.published.curves, theirs))
    )
    common = a.index.intersection(b.index)
    if common.empty:
        return None
    columns = ["mean", "standard_error", "samples"]
    (our, our_error, seeds), (their, their_error, count) = (
        side.loc[common.max(), columns].tolist() for side in (a, b)
    )
    return _standing(
        (problem, ours, theirs, common.max(), seeds, our, our_error, their, their_error),
        our - their,
        math.hypot(our_error, their_error),
        welch((our_error, their_error), (seeds, count)),
    )


def _standing(
    facts: Sequence[Any], difference: float, error: float, clear: float
) -> dict[str, Any]:
    problem, _, theirs, *_ = facts
    gain = -difference if metric_of(problem) == "regret" else difference
    least = clear * error  # zero if all seeds agree: any gain is clear then
    if math.isnan(gain) or math.isnan(least):
        verdict = "unknown"
    else:
        verdict = "level" if abs(gain) <= least else ("better" if gain > 0 else "worse")
    names = [name for name in STANDING[:11] if name not in ("group", "model")]
    return dict(zip(names, facts, strict=True)) | {
        "group": group_of(problem),
        "model": parse_method(theirs).model,
        "gain": gain,
        "error": error,
        "clear": clear,
        "verdict": verdict,
    }


def standings_section(study: Study) -> Section:
    """Problem by problem beside GPs and the paper, and the counts."""
    found, counts = standings(study), tallies(study)
    baseline = parse_method(BASELINE).label
    counts = counts.assign(model=counts["model"].map(MODELS), group=counts["group"].map(GROUPS))
    counts.columns = pd.Index(
        ["rival", "problems", "test", "ours", "of these, EI or LogEI", f"{baseline} run here"]
    )
    tables = [
        Table("standings-counts", counts, words={"baseline": baseline}),
        _standings_table("common-seeds", found[found["model"].isin(HERE)]),
        _standings_table("standings", found[found["model"].isin(PUBLISHED)]),
    ]
    return Section(
        "standings",
        tables=[table for table in tables if len(table.cells)],
        notes=[] if len(found) else ["Nothing to compare with."],
        words={"rule": RULE},
    )


def _standings_table(name: str, found: pd.DataFrame) -> Table:
    rows = [
        [
            panel_label(one.problem),
            parse_method(one.ours).short,
            MODELS[one.model],
            str(one.iteration),
            f"{one.seeds:.0f}",
            with_error(one.our_mean, one.our_error),
            with_error(one.their_mean, one.their_error),
            ("+" if one.gain >= 0 else "") + with_error(one.gain, one.error),
            one.verdict,
        ]
        for one in records(found)
    ]
    columns = ["problem", "acquisition", "rival", "n", "our seeds", "ours", "rival's", "gain"]
    return Table(name, pd.DataFrame(rows, columns=[*columns, "verdict"]))
