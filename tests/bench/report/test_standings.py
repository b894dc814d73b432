import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from amortes.bench.report.curves import load_published
from amortes.bench.report.parts import Study, records
from amortes.bench.report.standings import (
    PAIRED,
    WELCH,
    losses,
    standings,
    standings_section,
    tallies,
)
from tests.bench.report.fake import curve, make, results, run

Ends = Sequence[float] | Mapping[int, float]


def runs(problem: str, method: str, ends: Ends, last: int = 3) -> list[pd.DataFrame]:
    """A run for each seed, with this log10 regret or accuracy at the end, and worse before."""
    return [
        run(
            problem,
            method,
            seed,
            [0.0] * (last - 1) + [end],
            regret=[99.0] * (last - 1) + [10 ** min(end, 9.0)],
        )
        for seed, end in (ends if isinstance(ends, Mapping) else dict(enumerate(ends))).items()
    ]


def study_of(ends: Mapping[str, Ends], published: Mapping[str, float] | None = None) -> Study:
    """Ends of runs and published means, with an error of 0.1, by `problem method`."""
    found, curves = [], []
    for key, values in ends.items():
        problem, method = key.split()
        found += runs(problem, method, values)
    for key, mean in (published or {}).items():
        problem, method = key.split()
        curves.append(curve(problem, method, mean, mean, n=5))
    return Study(results(*found), pd.concat([load_published()[:0], *curves]))


def only(study: Study) -> Any:
    (one,) = records(standings(study))
    return one


def test_verdicts() -> None:
    study = study_of(
        {
            "branin jes": (-1.0, -1.4, -0.6),
            "branin fb-jes": (-1.1, -0.9, -0.7),
            "branin random": (0.0, 0.1, 0.2),
            "lcbench-car jes": (80.0, 81.0, 82.0),
            "lcbench-car map-jes": (82.0, 83.1, 83.9),
        },
        {"branin paper:jes": 1.0, "branin paper:jes@uniform": 9.0},
    )
    found = {(one.problem, one.theirs): one for one in records(standings(study))}
    assert {key: one.verdict for key, one in found.items()} == {
        ("branin", "fb-jes"): "level",
        ("branin", "paper:jes"): "better",
        ("lcbench-car", "map-jes"): "worse",
    }
    assert found["branin", "fb-jes"].gain == pytest.approx(0.1)  # lower regret is better
    assert found["lcbench-car", "map-jes"].gain == pytest.approx(-2.0)  # higher accuracy is better
    better = found["branin", "paper:jes"]
    assert (better.iteration, better.seeds) == (3, 3)
    assert better.error == pytest.approx(math.hypot(better.our_error, 0.1))


def test_methods_run_here_are_compared_on_common_seeds_by_a_paired_test() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.normal(size=4)
    common = theirs - 0.3 + 0.1 * rng.normal(size=4)
    ours = {**dict(enumerate(common)), 7: 50.0, 8: -50.0}
    one = only(
        study_of({"branin jes": ours, "branin fb-jes": {**dict(enumerate(theirs)), 9: 50.0}})
    )
    assert one.seeds == 4
    assert (one.our_mean, one.our_error) == pytest.approx((common.mean(), stats.sem(common)))
    assert (one.their_mean, one.their_error) == pytest.approx((theirs.mean(), stats.sem(theirs)))
    expected = stats.ttest_rel(theirs, common)
    assert one.gain / one.error == pytest.approx(expected.statistic)
    assert one.gain - one.clear * one.error == pytest.approx(expected.confidence_interval().low)
    assert one.verdict == "better"  # which takes pairs
    assert stats.ttest_ind(theirs, common, equal_var=False).pvalue > 0.05


@pytest.mark.parametrize(("n", "verdict"), [(3, "level"), (6, "worse")])
def test_few_seeds_need_a_larger_difference(n: int, verdict: str) -> None:
    gaps = np.tile([0.1, 0.5, 0.3], n // 3)
    one = only(study_of({"branin jes": list(gaps), "branin fb-jes": [0.0] * n}))
    assert abs(one.gain / one.error) > 2.5
    assert one.verdict == verdict


def test_runs_of_different_length_are_compared_where_the_shortest_ends() -> None:
    long, short = runs("branin", "jes", {2: -9.0}, last=9), runs("branin", "jes", (-1.0, -1.5))
    one = only(Study(results(*long, *short, *runs("branin", "fb-jes", (-1.0, -1.5), last=7))))
    assert one.iteration == 3
    assert one.our_mean == pytest.approx(-1.25)
    assert one.their_mean == pytest.approx(math.log10(99.0))


def test_nothing_in_common_is_no_comparison() -> None:
    assert standings(study_of({"branin jes": {0: -1.0}, "branin fb-jes": {1: -1.0}})).empty
    later = run("ackley5", "fb-mes", 0, [0.0], first=9, regret=1.0)
    assert standings(Study(results(*runs("ackley5", "mes", [-1.0]), later))).empty


def test_published_curves_have_thirty_seeds_and_meet_all_of_ours() -> None:
    published = load_published()
    theirs = published.query("panel == 'branin' and method == 'paper:jes'")["mean"]
    ends = theirs.iloc[2] + 0.2 + 0.3 * np.random.default_rng(0).normal(size=12)
    study = Study(results(*runs("branin", "jes", list(ends))), published)
    one = {one.theirs: one for one in records(standings(study))}["paper:jes"]
    assert one.seeds == 12
    expected = stats.ttest_ind_from_stats(
        *(one.our_mean, one.our_error * math.sqrt(12), 12),
        *(one.their_mean, one.their_error * math.sqrt(30), 30),
        equal_var=False,
    )
    assert one.gain / one.error == pytest.approx(-expected.statistic)
    pvalue = 2 * stats.t(one.freedom).sf(abs(float(expected.statistic)))
    assert pvalue == pytest.approx(expected.pvalue)
    assert one.verdict == ("worse" if expected.pvalue < 0.05 else "level")
    assert one.clear < 2.2


def test_a_single_common_seed_has_no_verdict() -> None:
    one = only(study_of({"branin jes": (-1.0, -2.0), "branin fb-jes": {1: -1.0, 2: -3.0}}))
    assert one.gain == pytest.approx(1.0)
    assert one.verdict == "unknown"


@pytest.mark.parametrize(
    ("theirs", "verdict"), [(-1.0, "level"), (-0.5, "better"), (-1.5, "worse")]
)
def test_the_same_difference_on_all_seeds_is_a_verdict(theirs: float, verdict: str) -> None:
    one = only(study_of({"branin jes": (-1.0, -1.0), "branin fb-jes": (theirs, theirs)}))
    assert (one.error, one.verdict) == (0.0, verdict)


def test_counts_by_rival_and_family_with_the_baseline() -> None:
    """Ours and the baseline are the same on LCBench Car."""
    low, high, good = (-2.0, -2.1, -2.2), (1.0, 1.2, 1.1), (90.0, 91.0, 92.5)
    study = study_of(
        {
            "branin jes": low,
            "branin logei": high,
            "branin map-logei": low,
            "hartmann4 logei": low,
            "hartmann4-noise0.5 jes": low,
            "lcbench-car jes": good,
            "lcbench-car logei": good,
            "lcbench-car map-logei": good,
            "lcbench-higgs map-logei": (70.0, 72.0, 71.5),
        },
        {
            "branin paper:jes": 0.0,
            "branin paper:ei": 0.0,
            "hartmann4 paper:ei": -2.1,
            "hartmann4-noise0.5 paper:jes": 0.0,
            "lcbench-car paper:jes": 80.0,
            "lcbench-car paper:ei": 80.0,
            "lcbench-higgs paper:ei": 80.0,
        },
    )
    assert [*tallies(study).itertuples(index=False, name=None)] == [
        ("map", "synthetic", PAIRED, "0 : 0 : 1", "0 : 0 : 1", ""),
        ("map", "lcbench", PAIRED, "0 : 1 : 0", "0 : 1 : 0", ""),
        ("paper", "synthetic", WELCH, "1 : 1 : 1", "0 : 1 : 1", "1 : 0 : 0"),
        ("paper", "noise", WELCH, "1 : 0 : 0", "", ""),
        ("paper", "lcbench", WELCH, "2 : 0 : 0", "1 : 0 : 0", "1 : 0 : 1"),
    ]


def test_the_section_reaches_the_paper(study: Study) -> None:
    counts, here, published = make(standings_section, study).tables
    names = [counts.name, here.name, published.name]
    assert names == ["standings-counts", "common-seeds", "standings"]
    assert set(here.cells["rival"]) == {"fully Bayesian GP", "MAP GP"}
    assert set(published.cells["rival"]) == {"published α-PFN", "published fully Bayesian GP"}
    assert counts.cells.columns[-1] == "MAP GP LogEI run here"


def test_common_seeds_have_paired_gains() -> None:
    study = study_of({"branin logei": (-1.0, -2.0, -6.0), "branin fb-ei": (-0.5, -1.3)})
    _, table = make(standings_section, study).tables
    cells = "Branin, 2-D|LogEI|fully Bayesian GP|3|2|-1.50 ± 0.50|-0.90 ± 0.40|+0.60 ± 0.10|level"
    assert table.cells.to_numpy().tolist() == [cells.split("|")]


def two_of(ours: float, theirs: float, apart: float = 0.01) -> Study:
    """Two methods with two seeds on a problem, and these final log regrets, a bit apart."""
    ends = {"jes": (ours, apart), "fb-jes": (theirs, 2 * apart)}
    runs = [
        run("branin", method, seed, [-regret], regret=regret)
        for method, (level, step) in ends.items()
        for seed in (0, 1)
        for regret in [10 ** (level + step * seed)]
    ]
    return Study(results(*runs))


def test_losses_are_told() -> None:
    study = two_of(-1.0, -2.0)
    (line,) = losses(standings(study))
    assert line.startswith("Branin, 2-D: amortes JES reaches -0.99")
    assert "after 1 observations with the same 2 seeds (" in line
    assert line.endswith("standard errors, where 12.7 would do).")
    (line,) = losses(standings(two_of(-1.0, -2.0, apart=0.0)))
    assert line.endswith("with the same 2 seeds (the same difference on each).")
    assert list(losses(standings(two_of(-2.0, -1.0)))) == []
