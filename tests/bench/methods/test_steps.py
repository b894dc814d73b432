import pytest
import torch
from torch import Tensor

from amortes.acquisition import Score
from amortes.bench.methods.steps import highest_unseen, recommend, timed_step
from amortes.errors import DataError
from amortes.random import generator
from tests.bench.fake import Bowl, Points


def score(X: Tensor) -> Tensor:
    """Flat along the second coordinate, but not quite."""
    weight = torch.tensor([1.0, 1e-3], dtype=torch.float64)
    return -((X - 0.3).square() * weight).sum(-1)


@pytest.mark.parametrize("seed", range(3))
def test_the_recommended_point_is_at_the_top_of_the_mean(seed: int) -> None:
    X = torch.rand(5, 2, generator=generator(seed), dtype=torch.float64)
    x = recommend(Bowl(), X, X[:, 0], lambda: score, seed)
    torch.testing.assert_close(x, torch.full((2,), 0.3, dtype=torch.float64), atol=1e-6, rtol=0)


def test_in_a_pool_seen_points_may_be_recommended_but_not_chosen() -> None:
    pool = torch.tensor([[0.9, 0.0], [0.3, 0.3], [0.4, 0.3]], dtype=torch.float64)
    problem = Points()
    problem.pool, problem.noise_sd = pool, 0.1
    assert torch.equal(recommend(problem, pool[1:2], pool[1:2, 0], lambda: score, 0), pool[1])
    assert torch.equal(highest_unseen(score, pool, pool[1:2]), pool[2])
    with pytest.raises(DataError, match="all 3 points"):
        highest_unseen(score, pool, pool)


def test_where_the_best_is_seen_nothing_is_computed() -> None:
    X = Points.pool[[4, 1, 7]]

    def mean() -> Score:
        raise AssertionError("asked for a mean that nobody needs")

    assert torch.equal(recommend(Points(), X, X[:, 0], mean, 0), X[1])


def test_steps_are_taken_one_after_the_other() -> None:
    one = torch.ones(1)
    step = timed_step(lambda: 3, lambda model: model * one, lambda model: model**2 * one)
    assert (step.x.tolist(), step.recommended.tolist()) == ([3.0], [9.0])
    assert 0 <= min(step.fit_seconds, step.search_seconds, step.recommend_seconds) < 1
