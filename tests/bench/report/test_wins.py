import math

from amortes.bench.report.statistics import wilson
from amortes.bench.report.wins import Wins, gp_pairs, last_common, pooled, win_rate
from tests.bench.report.fake import results, run


def test_a_win_a_tie_and_a_loss() -> None:
    sweep = results(
        run("a", "jes", 0, [0.0, 3.0]),
        run("a", "fb-jes", 0, [9.0, 2.0]),
        run("a", "jes", 1, [2.0]),
        run("a", "fb-jes", 1, [2.0]),
        run("b", "jes", 0, [1.0]),
        run("b", "fb-jes", 0, [2.0]),
        run("b", "jes", 7, [9.0]),  # nobody to be compared with
    )
    wins = win_rate(sweep, "jes", "fb-jes", sweep.problems)
    assert wins == Wins(points=1.5, n=3)
    assert wins.interval == wilson(1.5, 3)
    assert win_rate(sweep, "fb-jes", "jes", sweep.problems) == Wins(points=1.5, n=3)
    assert win_rate(sweep, "jes", "fb-jes", ["b"]) == Wins(points=0.0, n=1)
    assert wins.text.startswith("0.50 [")


def test_the_shorter_run_decides_when() -> None:
    long, short = run("a", "jes", 0, [1.0, 2.0, 9.0]), run("a", "fb-jes", 0, [0.0, 3.0])
    assert last_common((long, short)) == 2
    assert win_rate(results(long, short), "jes", "fb-jes", ["a"]).points == 0.0
    gap = run("a", "jes", 0, [1.0], first=7)
    assert last_common((long, gap)) == 0
    assert win_rate(results(short, gap), "jes", "fb-jes", ["a"]).n == 0


def test_without_pairs() -> None:
    nothing = Wins(points=0.0, n=0)
    assert math.isnan(nothing.rate)
    assert nothing.text == ""


def test_pairs_of_a_problem_are_pooled() -> None:
    sweep = results(
        *(run("a", name, seed, [seed]) for name in ("jes", "fb-jes") for seed in (0, 1)),
        run("a", "mes", 0, [1.0]),
        run("a", "fb-mes", 0, [0.0]),
        run("b", "jes", 0, [1.0]),
        run("b", "fb-jes", 0, [2.0]),
        run("c", "jes", 0, [1.0]),
    )
    pairs = [("jes", "fb-jes"), ("mes", "fb-mes")]
    assert pooled(sweep, pairs) == [Wins(points=2.0, n=3), Wins(points=0.0, n=1)]


def test_pairs_share_their_acquisition() -> None:
    names = ("mes", "logei", "jes@x", "fb-ei", "fb-mes", "map-logei", "map-gibbon", "random")
    sweep = results(*(run("a", name, 0, [1.0]) for name in names))
    assert gp_pairs(sweep) == [
        ("mes", "fb-mes"),
        ("logei", "fb-ei"),
        ("mes", "map-gibbon"),
        ("logei", "map-logei"),
    ]
