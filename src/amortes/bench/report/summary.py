"""The top of the report: what was run, the headline numbers, and where ours is worse."""

from collections.abc import Iterator

import pandas as pd
from scipy import stats

from amortes.bench.report.names import GROUPS, MODELS, label_of, panel_label, parse_method
from amortes.bench.report.parts import Study, records
from amortes.bench.report.runtime import speed_ups, timed_rows
from amortes.bench.report.standings import BASELINE, HERE, tallies
from amortes.bench.report.text import times
from amortes.optimiser.text import counted

Headline = tuple[str, str]
"""A number and what it is."""


def what_was_run(study: Study) -> str:
    """One paragraph."""
    results = study.results
    seeds = results.runs.groupby(["problem", "method"]).size()
    groups = [f"{len(found)} {GROUPS[name]}" for name, found in study.groups.items()]
    each = f"{seeds.min()} to {seeds.max()} seeds"
    if seeds.min() == seeds.max():
        each = counted(seeds.min(), "seed")
    versions, commits = (sorted(set(results.rows[c]) - {""}) for c in ("version", "commit"))
    made = f" amortes {', '.join(versions)}" if versions else ""
    if commits:
        short = [commit[:10] + ("+" if commit.endswith("+") else "") for commit in commits]
        made += f" (commit {', '.join(short)})"
    return (
        f"{len(results.runs):,} runs with {len(results.rows):,} recorded iterations: "
        f"{counted(len(results.methods), 'method')} on "
        f"{counted(len(results.problems), 'problem')} ({'; '.join(groups)}), {each} each."
        + (f" Made with{made}." if made else "")
    )


def headlines(study: Study) -> Iterator[Headline]:
    """What a hurried reader sees: speed-ups and standings."""
    ups = speed_ups(timed_rows(study.timed or study.results))
    models = ups["theirs"].map(lambda name: parse_method(name).model)
    for title, chosen in (
        ("fully Bayesian GP", models == "fb"),
        ("MAP GP with LogEI", ups["theirs"] == "map-logei"),
    ):
        if len(factors := ups["factor"][chosen]):
            yield (
                times(float(stats.gmean(factors))),
                f"as fast per suggestion as the {title} (geometric mean; {times(factors.min())} to "
                f"{times(factors.max())} over problems and acquisitions)",
            )
    for one in records(tallies(study)):
        beside = f"; {label_of(BASELINE)} run here, beside its EI: {one.baseline}"
        yield (
            one.ours,
            f"better : level : worse than {MODELS[one.model]} ({GROUPS[one.group]}), "
            f"counting problems and acquisitions by {one.test} (two-sided, 95%)"
            + (beside if one.baseline else ""),
        )


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
