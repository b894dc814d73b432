from amortes.bench.report.parts import Study
from amortes.bench.report.standings import standings
from amortes.bench.report.summary import headlines, losses, what_was_run
from tests.bench.report.fake import results, run


def study_of(ours: float, theirs: float, apart: float = 0.01) -> Study:
    """Two methods with two seeds on a problem, and these final log regrets, a bit apart."""
    ends = {"jes": (ours, apart, 0.5), "fb-jes": (theirs, 2 * apart, 20.0)}
    runs = [
        run("branin", method, seed, [-regret], regret=regret, fit=time)
        for method, (level, step, time) in ends.items()
        for seed in (0, 1)
        for regret in [10 ** (level + step * seed)]
    ]
    return Study(results(*runs))


def test_headlines() -> None:
    study = study_of(-2.0, -1.0)
    assert {number for number, _ in headlines(study)} == {"40×", "1 : 0 : 0"}
    assert list(losses(standings(study))) == []
    assert what_was_run(study).startswith(
        "4 runs with 4 recorded iterations: 2 methods on 1 problem (1 synthetic), 2 seeds each."
    )


def test_losses_are_told() -> None:
    study = study_of(-1.0, -2.0)
    assert {"0 : 0 : 1"} <= {number for number, _ in headlines(study)}
    (line,) = losses(standings(study))
    assert line.startswith("Branin, 2-D: amortes JES reaches -0.99")
    assert "after 1 observations with the same 2 seeds (" in line
    assert line.endswith("standard errors, where 12.7 would do).")
    (line,) = losses(standings(study_of(-1.0, -2.0, apart=0.0)))
    assert line.endswith("with the same 2 seeds (the same difference on each).")


def test_standings_are_told_by_family_with_their_test_and_the_baseline(study: Study) -> None:
    told = [meaning for number, meaning in headlines(study) if " : " in number]
    groups = ("synthetic", "synthetic, other noise", "LCBench")
    rivals = ("MAP GP", "published α-PFN", "published fully Bayesian GP")
    assert [line.partition(", counting")[0].removeprefix("better : level : ") for line in told] == [
        "worse than fully Bayesian GP (synthetic)",
        *(f"worse than {rival} ({group})" for rival in rivals for group in groups),
    ]
    assert ["paired" in line for line in told] == [True] * 4 + [False] * 6
    assert ["Welch" in line for line in told] == [False] * 4 + [True] * 6
    beside = ["; MAP GP LogEI run here, beside its EI: " in line for line in told]
    assert beside == [False] * 4 + [True, False, True] * 2  # no EI is published for more noise


def test_a_lone_method_has_no_headlines() -> None:
    lone = Study(results(run("branin", "jes", 0, [0.0], regret=1.0)))
    assert list(headlines(lone)) == []


def test_what_was_run(study: Study) -> None:
    told = what_was_run(study)
    assert "amortes 0.1.0 (commit 0123456789)" in told
    assert " (2 synthetic; 1 synthetic, other noise; 1 LCBench; 2 HPO-B; 1 other)" in told
    changed = results(run("branin", "jes", 0, [0.0], commit="0123456789ab+"))
    assert "(commit 0123456789+)" in what_was_run(Study(changed))
