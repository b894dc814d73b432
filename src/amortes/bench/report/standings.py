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

from collections.abc import Iterator, Sequence

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
PAIR = ["problem", "group", "model", "ours", "theirs"]


def standings(study: Study, chosen: Sequence[str] | None = None) -> pd.DataFrame:
    """All comparisons of ours (or these methods) that results and published curves allow.

    Each is after as many observations as both sides have. `gain` is positive if ours is better, in
    units of the metric, `error` its standard error, `clear` the |t| above which means count as
    different; the verdict is better, level or worse, or unknown with a single seed.
    """
    pairs, published = [], study.published
    if chosen is None:
        chosen = [name for name in study.results.methods if parse_method(name).is_ours]
    for problem, curves in study.curves_of(*COMPARED).groupby("panel", sort=False):
        here = curves["method"].unique()
        names = [*here, *published["method"][published["panel"] == problem].unique()]
        for ours in filter(chosen.__contains__, here):
            for model in (*HERE, *PUBLISHED):
                if theirs := same_acquisition(names, ours, model):
                    pairs.append([problem, group_of(str(problem)), model, ours, theirs])
    wanted = pd.DataFrame(pairs, columns=PAIR)
    found = pd.concat([_paired(study, wanted), _independent(study, wanted)])
    found = wanted.merge(found, on=PAIR)
    lower = found["problem"].map(metric_of) == "regret"
    gain = (found["our_mean"] - found["their_mean"]) * np.where(lower, -1.0, 1.0)
    clear = pd.Series(stats.t.ppf(0.975, found["freedom"].astype(float)), found.index)
    least = clear * found["error"]  # zero if all seeds agree: any gain is clear then
    cases = [gain.isna() | least.isna(), gain.abs() <= least, gain > 0]
    verdict = np.select(cases, ["unknown", "level", "better"], "worse")
    return found.assign(gain=gain, clear=clear, verdict=verdict)


def _paired(study: Study, pairs: pd.DataFrame) -> pd.DataFrame:
    """On the seeds that both have, after as many observations as all of these runs have."""
    rows = study.results.rows[["problem", "method", "seed", "iteration", "metric"]].dropna()
    both = pairs[pairs["model"].isin(HERE)]
    for side, method in (("our", "ours"), ("their", "theirs")):
        both = both.merge(rows.rename(columns={"method": method, "metric": side}))
    groups = both.assign(gap=both["our"] - both["their"]).groupby([*PAIR, "iteration"])
    found = groups.agg(
        seeds=("seed", "size"),
        our_mean=("our", "mean"),
        our_error=("our", "sem"),
        their_mean=("their", "mean"),
        their_error=("their", "sem"),
        error=("gap", "sem"),
    ).reset_index()
    most = found.groupby(PAIR)["seeds"].transform("max")
    found = found[found["seeds"] == most].groupby(PAIR).tail(1)
    return found.assign(freedom=found["seeds"] - 1)


def _independent(study: Study, pairs: pd.DataFrame) -> pd.DataFrame:
    """With all our seeds, at the last iteration that both curves have."""
    both = pairs[pairs["model"].isin(PUBLISHED)]
    for side, method, curves in (
        ("our", "ours", study.curves),
        ("their", "theirs", study.published),
    ):
        names = {"panel": "problem", "method": method, "samples": f"{side}_samples"}
        names |= {"mean": f"{side}_mean", "standard_error": f"{side}_error"}
        both = both.merge(curves.rename(columns=names))
    found = both.sort_values("iteration", kind="stable").groupby(PAIR).tail(1)
    a, b = found["our_error"] ** 2, found["their_error"] ** 2
    n, m = found["our_samples"], found["their_samples"]
    # Welch and Satterthwaite; NaN with a single sample.
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    return found.assign(seeds=n, error=(a + b) ** 0.5, freedom=freedom)


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
