import pytest

from amortes.bench.report.runtime import panels, speed_up, speed_ups, timing
from tests.bench.report.fake import results, run

OURS = run("branin", "jes", 0, [0] * 3, seconds=[(1, 2, 9), (1, 2, 9), (4, 8, 9)])
THEIRS = run("branin", "fb-jes", 0, [0] * 2, seconds=[(10, 20, 0), (20, 10, 0)])


def test_means_and_total() -> None:
    found = timing(results(OURS), "jes", ["branin"])
    assert found is not None
    assert (found.fit, found.search, found.recommend, found.iterations) == (2.0, 4.0, 9.0, 3)
    assert found.total == 6.0
    assert timing(results(OURS), "mes", ["branin"]) is None
    assert timing(results(run("branin", "jes", 0, [0.0])), "jes", ["branin"]) is None


def test_the_same_iterations_are_compared() -> None:
    one = speed_up(results(OURS, THEIRS), "branin", "jes", "fb-jes")
    assert one is not None
    assert one.last == 2
    assert one.our_time.total == 3.0
    assert one.factor == 10.0


def test_the_same_tasks_are_compared() -> None:
    sweep = results(
        run("hpob-5527-1", "jes", 0, [0.0], seconds=[(1, 0, 0)]),
        run("hpob-5527-2", "jes", 0, [0.0], seconds=[(99, 0, 0)]),
        run("hpob-5527-1", "map-jes", 0, [0.0], seconds=[(5, 0, 0)]),
    )
    assert panels(sweep) == {"hpob-5527": ["hpob-5527-1", "hpob-5527-2"]}
    one = speed_up(sweep, "hpob-5527", "jes", "map-jes")
    assert one is not None
    assert one.factor == pytest.approx(5.0)
    assert speed_up(sweep, "hpob-5527", "jes", "fb-jes") is None


def test_rivals() -> None:
    logei = run("branin", "map-logei", 0, [0.0], seconds=[(1, 1, 0)])
    other = run("branin", "jes@x", 0, [0.0], seconds=[(1, 1, 0)])
    found = speed_ups(results(OURS, THEIRS, logei, other))
    assert [(one.ours, one.theirs, one.model) for one in found] == [
        ("jes", "fb-jes", "fb"),
        ("jes", "map-logei", "map"),
    ]
