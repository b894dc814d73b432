from dataclasses import replace

from amortes.bench.report.published import Published
from amortes.bench.report.study import Study
from amortes.bench.report.summary import headline_table, run_table, summarise
from tests.bench.report.fake import results, run


def study_of(ours: float, theirs: float) -> Study:
    """Two methods with two seeds on a problem, and these final log regrets, 0.01 apart."""
    return Study(
        results(
            *(
                run(
                    "branin",
                    method,
                    seed,
                    [-(10 ** (level + 0.01 * seed))],
                    regret=[10 ** (level + 0.01 * seed)],
                    seconds=[(time, 0, 0)],
                )
                for method, level, time in (("jes", ours, 0.5), ("fb-jes", theirs, 20.0))
                for seed in (0, 1)
            )
        ),
        Published(),
    )


def test_headlines() -> None:
    summary = summarise(study_of(-2.0, -1.0))
    numbers = {one.number for one in summary.headlines}
    assert numbers == {"100%", "40×", "1.0", "1 : 0 : 0"}
    assert (summary.worse, summary.compared) == ([], 1)
    assert summary.run.startswith(
        "4 runs with 4 recorded iterations: 2 methods on 1 problem (1 synthetic), 2 seeds each."
    )
    assert headline_table(summary).rows[0][0] == "100%"


def test_losses_are_told() -> None:
    summary = summarise(study_of(-1.0, -2.0))
    assert {"0%", "0 : 0 : 1"} <= {one.number for one in summary.headlines}
    (line,) = summary.worse
    assert line.startswith("Branin, 2-D: amortes JES reaches -0.99")


def test_a_lone_method_has_no_headlines() -> None:
    lone = Study(results(run("branin", "jes", 0, [0.0], regret=[1.0])))
    assert summarise(lone).headlines == []
    assert summarise(lone).compared == 0
    assert run_table(lone).rows == [["branin", "jes", "0", "1", "0", "1"]]


def test_the_study(study: Study) -> None:
    summary = summarise(study)
    assert "(commit 0123456789)" in summary.run
    assert " (2 synthetic; 1 synthetic, other noise; 1 LCBench; 2 HPO-B; 1 other)" in summary.run
    changed = replace(study.results, commits=["0123456789ab+"])
    assert "(commit 0123456789+)" in summarise(Study(changed)).run
    assert len(run_table(study).rows) == len(study.results.runs)
