"""The top of the report: what was run, the headline numbers, and where ours is worse."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amortes.bench.report.comparison_sections import ALL, groups
from amortes.bench.report.names import FAMILIES, MODELS, panel_label, parse_method
from amortes.bench.report.ranks import average_ranks
from amortes.bench.report.runtime import speed_ups
from amortes.bench.report.standings import BASELINE, HERE, Standing, standings, tallies
from amortes.bench.report.statistics import bootstrap
from amortes.bench.report.study import Study, join
from amortes.bench.report.tables import Table, counted, times
from amortes.bench.report.wins import gp_pairs, pooled

FEWEST_CLUSTERS = 5
"""With fewer problems a bootstrap over them says nothing."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A number and what it is."""

    number: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a hurried reader sees."""

    run: str  # one paragraph
    headlines: Sequence[Headline]
    compared: int  # of ours with rivals, problem by problem, with known errors
    worse: Sequence[str]  # those that ours loses clearly


def summarise(study: Study) -> Summary:
    """The summary of a study."""
    found = standings(study)
    return Summary(
        run=_what_was_run(study),
        headlines=[
            *_win_headlines(study),
            *_speed_headlines(study),
            *_rank_headline(study),
            *_standing_headlines(study),
        ],
        compared=sum(one.verdict != "unknown" for one in found),
        worse=[_sentence(one) for one in found if one.verdict == "worse"],
    )


def headline_table(summary: Summary) -> Table:
    """The headline numbers."""
    return Table(
        name="summary",
        title=summary.run,
        columns=["number", "meaning"],
        rows=[[one.number, one.meaning] for one in summary.headlines],
    )


def run_table(study: Study) -> Table:
    """The end of every run, for download."""
    return Table(
        name="runs",
        title="The last row of every run",
        columns=["problem", "method", "seed", "observations", "value", "regret"],
        rows=[
            [
                run.problem,
                run.method,
                str(run.seed),
                str(run.last),
                *("" if np.isnan(x) else f"{x:.8g}" for x in (run.value[-1], run.regret[-1])),
            ]
            for run in study.results.runs
        ],
    )


def _what_was_run(study: Study) -> str:
    results = study.results
    seeds = Counter((run.problem, run.method) for run in results.runs)
    low, high = min(seeds.values()), max(seeds.values())
    iterations = sum(len(run.iteration) for run in results.runs)
    families = [f"{len(found)} {FAMILIES[name]}" for name, found in study.families.items()]
    versions = f" amortes {join(results.versions)}" if results.versions else ""
    commits = f" (commit {join(map(_short, results.commits))})" if results.commits else ""
    each = counted(low, "seed") if low == high else f"{low} to {high} seeds"
    return (
        f"{len(results.runs):,} runs with {iterations:,} recorded iterations: "
        f"{counted(len(results.methods), 'method')} on "
        f"{counted(len(results.problems), 'problem')} ({'; '.join(families)}), {each} each."
        + (f" Made with{versions}{commits}." if versions or commits else "")
    )


def _short(commit: str) -> str:
    """Ten digits, and the + of changes that were not committed."""
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _win_headlines(study: Study) -> list[Headline]:
    found = []
    for model in ("fb", "map"):
        pairs = [p for p in gp_pairs(study.results) if parse_method(p[1]).model == model]
        clusters = pooled(study.results, pairs)
        if clusters:
            points = np.array([wins.points for wins in clusters])
            n = np.array([wins.n for wins in clusters], dtype=np.float64)
            interval = ""
            if len(clusters) >= FEWEST_CLUSTERS:
                low, high = bootstrap(points, n)
                interval = f"95% interval {low:.0%} to {high:.0%} by bootstrap over problems; "
            found.append(
                Headline(
                    number=f"{points.sum() / n.sum():.0%}",
                    meaning=f"wins over the {MODELS[model]} with the same acquisition ({interval}"
                    f"{n.sum():.0f} pairs on {counted(len(clusters), 'problem')})",
                )
            )
    return found


def _speed_headlines(study: Study) -> list[Headline]:
    found = []
    every = speed_ups(study.times)
    for model, title in (("fb", "fully Bayesian GP"), ("map-logei", "MAP GP with LogEI")):
        factors = [one.factor for one in every if model in (one.model, one.theirs)]
        if factors:
            mean = float(np.exp(np.mean(np.log(factors))))
            found.append(
                Headline(
                    number=times(mean),
                    meaning=f"as fast per suggestion as the {title} (geometric mean; "
                    f"{times(min(factors))} to {times(max(factors))} over problems and "
                    "acquisitions)",
                )
            )
    return found


def _rank_headline(study: Study) -> list[Headline]:
    group, problems = list(groups(study).items())[-1]
    ranks = average_ranks(study.results, problems)
    if len(ranks.mean) < 2:
        return []
    best, mean = next(iter(ranks.mean.items()))
    where = "over all problems" if group == ALL else f"on {group}"
    return [
        Headline(
            number=f"{mean:.1f}",
            meaning=f"is the best average rank {where}, that of {parse_method(best).label} "
            f"({len(ranks.mean)} methods)",
        )
    ]


def _standing_headlines(study: Study) -> list[Headline]:
    return [
        Headline(
            number=one.ours,
            meaning=f"better : level : worse than {MODELS[one.model]} ({FAMILIES[one.family]}), "
            f"counting problems and acquisitions by {one.test} (two-sided, 95%)"
            + (
                f"; {parse_method(BASELINE).label} run here, beside its EI: {one.baseline}"
                if one.baseline
                else ""
            ),
        )
        for one in tallies(study)
    ]


def _sentence(one: Standing) -> str:
    seeds = f" with the same {one.our.seeds:.0f} seeds" if one.model in HERE else ""
    apart = "the same difference on each"
    if one.error > 0:
        apart = f"{abs(one.t):.1f} standard errors, where {one.clear:.1f} would do"
    return (
        f"{panel_label(one.problem)}: {parse_method(one.ours).label} reaches {one.our.mean:.2f}, "
        f"{parse_method(one.theirs).label} {one.their.mean:.2f} after {one.iteration} observations"
        f"{seeds} ({apart})."
    )
