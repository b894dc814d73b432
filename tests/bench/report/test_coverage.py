from amortes.bench.report.coverage import coverage, missing, what_was_run
from amortes.bench.report.parts import Study
from tests.bench.report.fake import make, results, run

SWEEP = results(
    *(run("branin", "jes", seed, [0.0] * n) for seed, n in ((0, 5), (1, 5), (2, 9))),
    run("branin", "fb-jes", 0, [0.0] * 3),
    *(run(f"hpob-5527-{task}", "jes", seed, [0.0] * 4) for task in (31, 9914) for seed in (0, 1)),
)


def test_the_table() -> None:
    (table,) = make(coverage, Study(SWEEP)).tables
    assert [*table.cells] == ["problem", "amortes JES", "fully Bayesian GP JES"]
    assert table.cells.to_numpy().tolist() == [
        ["Branin, 2-D", "3 × 5-9", "1 × 3"],
        ["HPO-B 5527, 8-D", "2 × 2 × 4", ""],
    ]


def test_failures_are_missing(study: Study) -> None:
    assert any("fb-mes, seed 0" in note for note in make(coverage, study).notes)


def test_weights_that_differ_are_told() -> None:
    runs = [run("branin", "jes", seed, [0.0], weights=digest) for seed, digest in enumerate("ab")]
    assert "jes: its runs were made with different weights (a, b)." in missing(results(*runs))


def test_what_was_run(study: Study) -> None:
    told = what_was_run(study)
    assert "amortes 0.1.0 (commit 0123456789)" in told
    assert " (2 synthetic; 1 synthetic, other noise; 1 LCBench; 2 HPO-B; 1 other)" in told
    changed = results(run("branin", "jes", 0, [0.0], commit="0123456789ab+"))
    assert "(commit 0123456789+)" in what_was_run(Study(changed))
