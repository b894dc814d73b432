from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.bench.protocol import Method, Problem, Step, initial_points, noise, optimise
from amortes.errors import ConfigError, DataError
from tests.bench.fake import Bowl, Points, RandomSearch, fake_method


class Watched(RandomSearch):
    """Keeps what it was shown; draws from torch's global generator, as others' methods do."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.seen: list[tuple[Tensor, Tensor]] = []

    def step(self, X: Tensor, y: Tensor) -> Step:
        self.seen.append((X.clone(), y.clone()))
        step = super().step(X, y)
        x = torch.rand(X.shape[1]).double()
        X.zero_()  # what a method does to its arguments is its own affair
        y.zero_()
        return Step(**{**vars(step), "x": x, "recommended": torch.full_like(x, 0.5)})


def run(method: Method, problem: Problem, iterations: int = 8, seed: int = 3) -> list[Any]:
    return optimise(problem, lambda problem, seed: method, seed=seed, iterations=iterations)


def test_observations_are_the_function_plus_the_shared_noise() -> None:
    problem = Bowl()
    method = Watched(problem, 3)
    records = run(method, problem)
    assert [len(X) for X, _ in method.seen] == [2, 3, 4, 5, 6, 7, 8]
    X, y = method.seen[-1]
    assert torch.equal(X[:2], initial_points(problem, 3))
    torch.testing.assert_close(y, problem.value(X) + noise(problem, 3, 8), rtol=0, atol=0)
    assert [record.iteration for record in records] == [2, 3, 4, 5, 6, 7, 8]
    for record in records:
        assert record.x == X[record.iteration - 1].tolist()
        assert record.y == float(y[record.iteration - 1])
        assert record.recommended == [0.5, 0.5]
        assert record.value == -0.125
        assert record.regret == 0.125
        told = y[: record.iteration].argmax()
        assert record.simple_value == float(problem.value(X)[told])
        assert record.simple_regret == -record.simple_value
        assert record.threads == 1


def test_a_longer_run_begins_as_a_shorter_one_and_leaves_the_global_generator_alone() -> None:
    problem = Bowl()
    before = torch.random.get_rng_state()
    short = run(Watched(problem, 3), problem, 5)
    torch.rand(3)
    torch.random.set_rng_state(before)
    assert run(Watched(problem, 3), problem, 40)[:4] == short
    assert torch.equal(torch.random.get_rng_state(), before)
    assert run(Watched(problem, 4), problem, 5, seed=4) != short


def test_streams_depend_on_problem_and_seed() -> None:
    first = initial_points(Bowl("bowl3"), 0)
    assert first.shape == (3, 3)
    assert not torch.equal(first, initial_points(Bowl("bowl3"), 1))
    assert not torch.equal(first[:2, :2], initial_points(Bowl("bowl2"), 0))
    errors = noise(Bowl(noise_sd=0.5), 0, 4000)
    assert torch.equal(errors[:7], noise(Bowl(noise_sd=0.5), 0, 7))
    assert abs(float(errors.mean())) < 0.04
    assert float(errors.std()) == pytest.approx(0.5, rel=0.05)
    assert not noise(Bowl(noise_sd=0.0), 0, 5).any()


def test_of_a_pool_without_noise_the_best_observation_counts() -> None:
    problem = Points()
    records = optimise(problem, fake_method("random"), seed=0, iterations=9)
    initial = initial_points(problem, 0)
    assert len(torch.unique(initial, dim=0)) == 2
    best = float(initial[:, 0].max())
    for record in records:
        best = max(best, record.x[0])
        assert record.value == record.recommended[0] == best
        assert record.regret == 1.0 - best


def test_unknown_optimum() -> None:
    problem = Bowl()
    problem.best = None
    for record in run(Watched(problem, 0), problem):
        assert (record.regret, record.simple_regret) == (None, None)


@pytest.mark.parametrize("x", [[0.5], [0.5, 1.5], [0.5, float("nan")]])
@pytest.mark.parametrize("field", ["x", "recommended"])
def test_a_point_outside_the_cube_is_refused(x: list[float], field: str) -> None:
    class Wrong(RandomSearch):
        def step(self, X: Tensor, y: Tensor) -> Step:
            return Step(**{**vars(super().step(X, y)), field: torch.tensor(x)})

    problem = Bowl()
    with pytest.raises(DataError, match=f"{field}: expected a point of the unit cube"):
        run(Wrong(problem, 0), problem)


def test_too_few_iterations_or_points_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least its 5 initial points, not 4"):
        run(RandomSearch(Bowl("bowl5"), 0), Bowl("bowl5"), 4)
    problem = Points()
    problem.pool = problem.pool[:1]
    with pytest.raises(ConfigError, match="1 < d"):
        initial_points(problem, 0)
