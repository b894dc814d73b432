import pytest

from amortes.bench.report.results import Run
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


def test_iterations_and_seeds_are_compared_task_by_task() -> None:
    def timed(task: int, method: str, seed: int, *fits: float) -> Run:
        return run(
            f"hpob-5527-{task}", method, seed, [0.0] * len(fits), seconds=[(s, 0, 0) for s in fits]
        )

    sweep = results(
        timed(1, "jes", 0, 1, 3, 90),  # of this task, the rival has two iterations
        timed(1, "fb-jes", 0, 10, 30),
        timed(2, "jes", 0, 2),
        timed(2, "fb-jes", 0, 20, 900, 900),
        timed(2, "jes", 1, 70),  # a seed of one method
        timed(2, "fb-jes", 2, 700),
    )
    one = speed_up(sweep, "hpob-5527", "jes", "fb-jes")
    assert one is not None
    assert (one.our_time.total, one.their_time.total) == (2.0, 20.0)
    assert (one.our_time.iterations, one.their_time.iterations, one.last) == (3, 3, 2)


def test_nothing_in_common_is_no_comparison() -> None:
    other = run("branin", "fb-jes", 1, [0.0], seconds=[(1, 1, 0)])
    untimed = run("branin", "map-jes", 0, [0.0])
    for theirs in ("fb-jes", "map-jes"):
        assert speed_up(results(OURS, other, untimed), "branin", "jes", theirs) is None


def test_rivals() -> None:
    logei = run("branin", "map-logei", 0, [0.0], seconds=[(1, 1, 0)])
    other = run("branin", "jes@x", 0, [0.0], seconds=[(1, 1, 0)])
    found = speed_ups(results(OURS, THEIRS, logei, other))
    assert [(one.ours, one.theirs, one.model) for one in found] == [
        ("jes", "fb-jes", "fb"),
        ("jes", "map-logei", "map"),
    ]
