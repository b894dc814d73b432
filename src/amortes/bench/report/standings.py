"""Ours beside each rival with the same acquisition, problem by problem, and how often it is better.

    t = gain / its standard error,   gain: ours - theirs, signed so that positive is better for us

Better or worse is what a t-test calls different, two-sided at 95%: |t| beyond the quantile of
Student's t. All else is level.

Methods run here share initial points and noise with ours, seed by seed. They are compared on the
seeds that both have, by a paired test: the error is that of the n differences, with n - 1 degrees
of freedom, and the quantile 2.3 with ten seeds and 4.3 with three. Published curves come from other
seeds and machines. There all our seeds count, and Welch's test (1947, Biometrika 34, 28-35) takes
the two sides as independent.

Ours may beat a published curve for reasons that have nothing to do with its network. So families of
problems are counted apart, and a plain GP that was run here stands beside the same curves.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from amortes.bench.report.names import (
    GROUPS,
    MODELS,
    facts,
    group_of,
    label_of,
    metric_of,
    panel_label,
    parse_method,
    same_acquisition,
)
from amortes.bench.report.parts import Part, Study, Table, records, section, with_error

COMPARED = ("synthetic", "noise", "lcbench")
HERE = ("fb", "map")
PUBLISHED = ("paper", "paper:fb")
BASELINE = "map-logei"
PAIRED = "a paired t-test over common seeds"
WELCH = "Welch's t-test over seeds"
RULE = f"{PAIRED} (methods run here) or {WELCH} (published curves), two-sided at 95%"
NUMBERS = ["our_mean", "our_error", "their_mean", "their_error", "error", "freedom"]


def standings(study: Study, chosen: Sequence[str] | None = None) -> pd.DataFrame:
    """All comparisons of ours (or these methods) that results and published curves allow.

    Each is after as many observations as both sides have. `gain` is positive if ours is better, in
    units of the metric, `error` its standard error, `clear` the |t| above which means count as
    different; the verdict is better, level or worse, or unknown with a single seed.
    """
    found, published = [], study.published
    if chosen is None:
        chosen = [name for name in study.results.methods if parse_method(name).is_ours]
    for problem in study.curves_of(*COMPARED)["panel"].unique():
        here = study.curves["method"][study.curves["panel"] == problem].unique()
        names = [*here, *published["method"][published["panel"] == problem].unique()]
        for ours in filter(chosen.__contains__, here):
            for model in (*HERE, *PUBLISHED):
                theirs = same_acquisition(names, ours, model)
                compare = _paired if model in HERE else _independent
                if theirs and (numbers := compare(study, problem, ours, theirs)):
                    found.append([problem, group_of(problem), model, ours, theirs, *numbers])
    columns = ["problem", "group", "model", "ours", "theirs", "iteration", "seeds", *NUMBERS]
    every = pd.DataFrame(found, columns=columns).astype(dict.fromkeys(NUMBERS, float))
    lower = every["problem"].map(metric_of) == "regret"
    gain = (every["our_mean"] - every["their_mean"]) * np.where(lower, -1.0, 1.0)
    clear = pd.Series(stats.t.ppf(0.975, every["freedom"]), every.index)
    least = clear * every["error"]  # zero if all seeds agree: any gain is clear then
    cases = [gain.isna() | least.isna(), gain.abs() <= least, gain > 0]
    verdict = np.select(cases, ["unknown", "level", "better"], "worse")
    return every.assign(gain=gain, clear=clear, verdict=verdict)


def _paired(study: Study, problem: str, ours: str, theirs: str) -> list[Any] | None:
    """On the seeds that both have, after as many observations as all of these runs have."""
    rows = study.results.rows
    rows = rows[(rows["problem"] == problem) & rows["method"].isin([ours, theirs])]
    rows = rows[rows.groupby("seed")["method"].transform("nunique") == 2]
    wide = rows.pivot(index="iteration", columns=["seed", "method"], values="metric").dropna()
    if wide.empty:
        return None
    last = wide.iloc[-1].unstack("method")
    a, b = last[ours], last[theirs]
    sides = [a.mean(), a.sem(), b.mean(), b.sem()]
    return [wide.index[-1], len(last), *sides, (a - b).sem(), len(last) - 1]


def _independent(study: Study, problem: str, ours: str, theirs: str) -> list[Any] | None:
    """With all our seeds, at the last iteration that both curves have."""
    (a, b) = (
        curves[(curves["panel"] == problem) & (curves["method"] == method)].set_index("iteration")
        for curves, method in ((study.curves, ours), (study.published, theirs))
    )
    common = a.index.intersection(b.index)
    if common.empty:
        return None
    columns = ["mean", "standard_error", "samples"]
    (our, our_error, n), (their, their_error, m) = (
        side.loc[common.max(), columns].tolist() for side in (a, b)
    )
    freedom = welch_freedom((our_error, their_error), (n, m))
    error = math.hypot(our_error, their_error)
    return [common.max(), n, our, our_error, their, their_error, error, freedom]


def welch_freedom(errors: tuple[float, float], counts: tuple[float, float]) -> float:
    """Degrees of freedom of a difference of means with these standard errors and sample sizes.

    NaN if they cannot be known, as with a single sample.
    """
    if not min(counts) > 1 or not max(errors) > 0:  # written so that NaN fails
        return math.nan
    a, b = (error**2 for error in errors)
    return (a + b) ** 2 / (a**2 / (counts[0] - 1) + b**2 / (counts[1] - 1))


def losses(found: pd.DataFrame) -> Iterator[str]:
    """Sentences on the standings in which ours is worse."""
    for one in records(found[found["verdict"] == "worse"]):
        seeds = f" with the same {one.seeds:.0f} seeds" if one.model in HERE else ""
        apart = "the same difference on each"
        if one.error > 0:
            apart = f"{-one.gain / one.error:.1f} standard errors, where {one.clear:.1f} would do"
        yield (
            f"{panel_label(one.problem)}: {label_of(one.ours)} reaches {one.our_mean:.2f}, "
            f"{label_of(one.theirs)} {one.their_mean:.2f} after {one.iteration} observations"
            f"{seeds} ({apart})."
        )


def tallies(study: Study) -> pd.DataFrame:
    """Counts `better : level : worse` for each rival and group, where there is something to count.

    `ours` is with all acquisitions, `ei` those with EI or LogEI, `baseline` that of BASELINE beside
    a published EI; empty if there are none.
    """
    ours, baseline = standings(study), standings(study, [BASELINE])
    counted = {
        "ours": ours,
        "ei": ours[facts(ours["ours"])["column"] == "ei"],
        "baseline": baseline[baseline["model"].isin(PUBLISHED)],
    }
    keys = ["model", "group"]
    order = pd.MultiIndex.from_product([(*HERE, *PUBLISHED), COMPARED], names=keys)
    counts = {name: found.groupby(keys)["verdict"].agg(_count) for name, found in counted.items()}
    every = pd.DataFrame(counts, order).dropna(subset="ours").fillna("").reset_index()
    every.insert(2, "test", np.where(every["model"].isin(HERE), PAIRED, WELCH))
    return every


def _count(verdicts: "pd.Series[str]") -> str:
    return " : ".join(str((verdicts == name).sum()) for name in ("better", "level", "worse"))


@section(
    "standings",
    "Problem by problem",
    "Each row compares one acquisition on our network with the same one on another model at the "
    "last iteration both have; a positive gain is in our favour, and the verdict is level unless "
    f"the means differ by {RULE}.",
)
def standings_section(study: Study) -> Iterator[Part]:
    """The counts, and problem by problem beside GPs and the paper."""
    found, counts = standings(study), tallies(study)
    baseline = label_of(BASELINE)
    if len(counts):
        counts = counts.assign(model=counts["model"].map(MODELS), group=counts["group"].map(GROUPS))
        counts.columns = pd.Index(
            ["rival", "problems", "test", "ours", "of these, EI or LogEI", f"{baseline} run here"]
        )
        title = (
            "Better : level : worse than the same acquisition on other models, counting problems "
            f"and acquisitions; for comparison, {baseline} run here beside published EI"
        )
        yield Table("standings-counts", title, counts)
    else:
        yield "Nothing to compare with."
    what = (
        "log10 inference regret, or accuracy (%) on LCBench, after n observations, mean and gain ± "
        "standard error"
    )
    seeds = "on the seeds that both have, with paired gains"
    if len(here := found[found["model"].isin(HERE)]):
        title = f"Ours beside GPs run here, {seeds}: {what}"
        yield Table("common-seeds", title, _standings_table(here))
    if len(published := found[found["model"].isin(PUBLISHED)]):
        title = f"Ours beside published curves: {what}"
        yield Table("standings", title, _standings_table(published))


def _standings_table(found: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "problem": panel_label(one.problem),
            "acquisition": parse_method(one.ours).short,
            "rival": MODELS[one.model],
            "n": str(one.iteration),
            "our seeds": f"{one.seeds:.0f}",
            "ours": with_error(one.our_mean, one.our_error),
            "rival's": with_error(one.their_mean, one.their_error),
            "gain": ("+" if one.gain >= 0 else "") + with_error(one.gain, one.error),
            "verdict": one.verdict,
        }
        for one in records(found)
    ]
    return pd.DataFrame(rows)
