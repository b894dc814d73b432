"""The top of the report: what was run, the headline numbers, and where ours is worse."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amortes.bench.report.comparisons import average_ranks, field_of, gp_pairs, of_pairs
from amortes.bench.report.names import GROUPS, MODELS, panel_label, parse_method
from amortes.bench.report.parts import ALL, Study, Table, records
from amortes.bench.report.runtime import speed_ups, timed_rows
from amortes.bench.report.standings import BASELINE, HERE, standings, tallies
from amortes.bench.report.statistics import bootstrap
from amortes.bench.report.text import counted, times

FEWEST_CLUSTERS = 5
"""With fewer problems a bootstrap over them says nothing."""
Headline = tuple[str, str]
"""A number and what it is."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a hurried reader sees."""

    run: str  # one paragraph
    headlines: list[Headline]
    compared: int  # of ours with rivals, problem by problem, with known errors
    worse: list[str]  # those that ours loses clearly

    def table(self) -> Table:
        """The headline numbers."""
        cells = pd.DataFrame(self.headlines, columns=["number", "meaning"])
        return Table("summary", cells, self.run)


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
        compared=int((found["verdict"] != "unknown").sum()),
        worse=[_sentence(one) for one in records(found[found["verdict"] == "worse"])],
    )


def _what_was_run(study: Study) -> str:
    results = study.results
    seeds = results.runs.groupby(["problem", "method"]).size()
    groups = [f"{len(found)} {GROUPS[name]}" for name, found in study.groups.items()]
    versions = f" amortes {', '.join(results.versions)}" if results.versions else ""
    commits = [commit[:10] + ("+" if commit.endswith("+") else "") for commit in results.commits]
    listed = f" (commit {', '.join(commits)})" if commits else ""
    each = f"{seeds.min()} to {seeds.max()} seeds"
    if seeds.min() == seeds.max():
        each = counted(seeds.min(), "seed")
    return (
        f"{len(results.runs):,} runs with {len(results.rows):,} recorded iterations: "
        f"{counted(len(results.methods), 'method')} on "
        f"{counted(len(results.problems), 'problem')} ({'; '.join(groups)}), {each} each."
        + (f" Made with{versions}{listed}." if versions or listed else "")
    )


def _win_headlines(study: Study) -> Iterator[Headline]:
    pairs = gp_pairs(study.results.methods)
    for model in ("fb", "map"):
        wins = of_pairs(study.wins, [p for p in pairs if parse_method(p[1]).model == model])
        if wins.empty:
            continue
        clusters = wins.groupby("problem", sort=False)[["points", "pairs"]].sum()
        interval = ""
        if len(clusters) >= FEWEST_CLUSTERS:
            low, high = bootstrap(clusters.reindex(study.results.problems).dropna())
            interval = f"95% interval {low:.0%} to {high:.0%} by bootstrap over problems; "
        points, n = clusters.sum()
        yield (
            f"{points / n:.0%}",
            f"wins over the {MODELS[model]} with the same acquisition ({interval}{n:.0f} pairs on "
            f"{counted(len(clusters), 'problem')})",
        )


def _speed_headlines(study: Study) -> Iterator[Headline]:
    every = speed_ups(timed_rows(study.timed or study.results))
    for model, title in (("fb", "fully Bayesian GP"), ("map-logei", "MAP GP with LogEI")):
        factors = every["factor"][(every["model"] == model) | (every["theirs"] == model)]
        if len(factors):
            yield (
                times(float(np.exp(np.log(factors).mean()))),
                f"as fast per suggestion as the {title} (geometric mean; {times(factors.min())} to "
                f"{times(factors.max())} over problems and acquisitions)",
            )


def _rank_headline(study: Study) -> Iterator[Headline]:
    group, problems = list(study.titled_groups.items())[-1]
    ranks = average_ranks(study.results, field_of(study.results, problems))["rank"]
    if len(ranks) > 1:
        where = "over all problems" if group == ALL else f"on {group}"
        yield (
            f"{ranks.iloc[0]:.1f}",
            f"is the best average rank {where}, that of {parse_method(str(ranks.index[0])).label} "
            f"({len(ranks)} methods)",
        )


def _standing_headlines(study: Study) -> Iterator[Headline]:
    for one in records(tallies(study)):
        beside = f"; {parse_method(BASELINE).label} run here, beside its EI: {one.baseline}"
        yield (
            one.ours,
            f"better : level : worse than {MODELS[one.model]} ({GROUPS[one.group]}), "
            f"counting problems and acquisitions by {one.test} (two-sided, 95%)"
            + (beside if one.baseline else ""),
        )


def _sentence(one: Any) -> str:
    seeds = f" with the same {one.seeds:.0f} seeds" if one.model in HERE else ""
    apart = "the same difference on each"
    if one.error > 0:
        apart = f"{abs(one.gain / one.error):.1f} standard errors, where {one.clear:.1f} would do"
    return (
        f"{panel_label(one.problem)}: {parse_method(one.ours).label} reaches {one.our_mean:.2f}, "
        f"{parse_method(one.theirs).label} {one.their_mean:.2f} after {one.iteration} observations"
        f"{seeds} ({apart})."
    )
