import itertools
from dataclasses import replace

import numpy as np

from amortes.bench.report.parts import Study
from amortes.bench.report.summary import summarise
from tests.bench.report.fake import results, run


def study_of(ours: float, theirs: float) -> Study:
    """Two methods with two seeds on a problem, and these final log regrets, a bit apart."""
    return Study(
        results(
            *(
                run(
                    "branin",
                    method,
                    seed,
                    [-(10 ** (level + apart * seed))],
                    regret=[10 ** (level + apart * seed)],
                    fit=time,
                )
                for method, level, apart, time in (
                    ("jes", ours, 0.01, 0.5),
                    ("fb-jes", theirs, 0.02, 20.0),
                )
                for seed in (0, 1)
            )
        )
    )


def test_headlines() -> None:
    summary = summarise(study_of(-2.0, -1.0))
    numbers = {number for number, _ in summary.headlines}
    assert numbers == {"100%", "40×", "1.0", "1 : 0 : 0"}
    assert (summary.worse, summary.compared) == ([], 1)
    assert summary.run.startswith(
        "4 runs with 4 recorded iterations: 2 methods on 1 problem (1 synthetic), 2 seeds each."
    )
    assert summary.table().cells["number"].iloc[0] == "100%"


def test_the_interval_of_the_win_rate_is_one_over_problems() -> None:
    """Ours wins everything on half of the problems, with two acquisitions and four seeds."""
    names = ("branin", "hartmann4", "ackley5", "hartmann6", "ackley8", "ackley5-near")
    runs = [
        run(problem, method, seed, [float(method[:3] != "fb-") if i % 2 else 0.5 + i])
        for i, problem in enumerate(names)
        for method in ("jes", "fb-jes", "mes", "fb-mes")
        for seed in range(4)
    ]
    (headline, *_) = summarise(Study(results(*runs))).headlines
    assert headline[0] == "75%"  # of the others, all are ties
    drawn = [np.mean(found) for found in itertools.product([1.0, 0.5], repeat=6)]
    low, high = (np.quantile(drawn, q, method="nearest") for q in (0.025, 0.975))
    assert headline[1] == (
        "wins over the fully Bayesian GP with the same acquisition (95% interval "
        f"{low:.0%} to {high:.0%} by bootstrap over problems; 48 pairs on 6 problems)"
    )
    (headline, *_) = summarise(Study(results(*runs[: 4 * 16]))).headlines
    assert headline[1].endswith("with the same acquisition (32 pairs on 4 problems)")


def test_losses_are_told() -> None:
    summary = summarise(study_of(-1.0, -2.0))
    assert {"0%", "0 : 0 : 1"} <= {number for number, _ in summary.headlines}
    (line,) = summary.worse
    assert line.startswith("Branin, 2-D: amortes JES reaches -0.99")
    assert "after 1 observations with the same 2 seeds (" in line
    assert line.endswith("standard errors, where 12.7 would do).")


def test_losses_that_are_the_same_on_all_seeds_have_no_standard_errors() -> None:
    runs = [
        run("branin", method, seed, [-regret], regret=[regret])
        for method, regret in (("jes", 1.0), ("fb-jes", 0.1))
        for seed in (0, 1)
    ]
    (line,) = summarise(Study(results(*runs))).worse
    assert line.endswith("with the same 2 seeds (the same difference on each).")


def test_standings_are_told_by_family_with_their_test_and_the_baseline(study: Study) -> None:
    told = [meaning for number, meaning in summarise(study).headlines if " : " in number]
    assert [line.partition(", counting")[0].removeprefix("better : level : ") for line in told] == [
        "worse than fully Bayesian GP (synthetic)",
        "worse than MAP GP (synthetic)",
        "worse than MAP GP (synthetic, other noise)",
        "worse than MAP GP (LCBench)",
        "worse than published α-PFN (synthetic)",
        "worse than published α-PFN (synthetic, other noise)",
        "worse than published α-PFN (LCBench)",
        "worse than published fully Bayesian GP (synthetic)",
        "worse than published fully Bayesian GP (synthetic, other noise)",
        "worse than published fully Bayesian GP (LCBench)",
    ]
    assert ["paired" in line for line in told] == [True] * 4 + [False] * 6
    assert ["Welch" in line for line in told] == [False] * 4 + [True] * 6
    beside = ["; MAP GP LogEI run here, beside its EI: " in line for line in told]
    assert beside == [False] * 4 + [True, False, True] * 2  # no EI is published for more noise


def test_a_lone_method_has_no_headlines() -> None:
    lone = Study(results(run("branin", "jes", 0, [0.0], regret=1.0)))
    assert summarise(lone).headlines == []
    assert summarise(lone).compared == 0


def test_the_study(study: Study) -> None:
    summary = summarise(study)
    assert "(commit 0123456789)" in summary.run
    assert " (2 synthetic; 1 synthetic, other noise; 1 LCBench; 2 HPO-B; 1 other)" in summary.run
    changed = replace(study.results, commits=["0123456789ab+"])
    assert "(commit 0123456789+)" in summarise(Study(changed)).run
