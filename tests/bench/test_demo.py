import math

import pytest

from amortes.bench.demo import METHODS, SCENES, Scene, average, draw, run_scene
from amortes.bench.problems.registry import make_problem

EVALUATIONS = 9


@pytest.fixture(scope="module")
def results() -> list[tuple[Scene, dict[str, list[list[float]]]]]:
    pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    heard: list[str] = []
    found = [
        (scene, run_scene(scene, EVALUATIONS, 1, lambda **told: heard.extend(told)))
        for scene in SCENES
    ]
    assert heard == ["note", "advance"] * len(SCENES) * len(METHODS)
    return found


def test_all_methods_start_alike(
    results: list[tuple[Scene, dict[str, list[list[float]]]]],
) -> None:
    for scene, curves in results:
        d = make_problem(scene.problem).d
        assert list(curves) == list(METHODS)
        for runs in curves.values():
            assert [len(run) for run in runs] == [EVALUATIONS - d + 1]
            assert all(math.isfinite(value) for value in runs[0])
    tuning = results[0][1]
    assert len({runs[0][0] for runs in tuning.values()}) == 1  # the same first points
    for runs in tuning.values():
        assert runs[0] == sorted(runs[0])  # best so far, without noise


def test_a_figure(results: list[tuple[Scene, dict[str, list[list[float]]]]]) -> None:
    figure = draw(results, EVALUATIONS)
    assert len(figure.axes) == len(SCENES)
    for ax in figure.axes:
        assert len(ax.lines) == 2 * len(METHODS)
    _, labels = figure.axes[-1].get_legend_handles_labels()
    assert labels == list(METHODS.values())


def test_averages() -> None:
    linear, logarithmic = SCENES
    assert average(linear, [1.0, 3.0]) == 2.0
    assert average(logarithmic, [1.0, 100.0]) == pytest.approx(10.0)
