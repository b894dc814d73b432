"""All sections of the report in order, by the name that `--only` takes, and their figures."""

from collections.abc import Callable

from amortes.bench.report.ablation_sections import (
    noise_section,
    traces_section,
    variants_section,
)
from amortes.bench.report.comparison_sections import (
    ranks_section,
    standings_section,
    wins_section,
)
from amortes.bench.report.coverage import coverage_section
from amortes.bench.report.curve_sections import accuracy_section, other_section, regret_section
from amortes.bench.report.families import families_section
from amortes.bench.report.hpob_section import hpob_section
from amortes.bench.report.runtime_section import runtime_section
from amortes.bench.report.study import Section, Study

SECTIONS: dict[str, Callable[[Study], Section]] = {
    "regret": regret_section,
    "accuracy": accuracy_section,
    "hpob": hpob_section,
    "real": other_section,
    "families": families_section,
    "wins": wins_section,
    "ranks": ranks_section,
    "standings": standings_section,
    "runtime": runtime_section,
    "noise": noise_section,
    "weights": variants_section,
    "traces": traces_section,
    "coverage": coverage_section,
}

FIGURES = {
    "regret": "regret",
    "regret-gp": "regret",
    "accuracy": "accuracy",
    "accuracy-gp": "accuracy",
    "hpob-ranks": "hpob",
    "hpob-regret": "hpob",
    "hpob-ranks-published": "hpob",
    "real": "real",
    "real-gp": "real",
    "wins": "wins",
    "win-matrix": "wins",
    "ranks": "ranks",
    "runtime": "runtime",
    "noise": "noise",
    "weights": "weights",
    "traces": "traces",
}
"""The section of each figure, by the name that `--figure` takes."""

TABLES = (
    *("regret-table", "accuracy-table", "hpob-table", "real-table", "wins-table", "ranks-table"),
    *("standings-counts", "common-seeds", "standings", "runtime-table", "speed-up"),
    *("families-ranks", "families-differences", "families-wins"),
    *("noise-table", "weights-table", "traces-table", "coverage"),
)
"""All tables of sections there may be."""
