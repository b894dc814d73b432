import pytest
import torch
from torch import Tensor

from amortes.bench.methods.model_based import highest, highest_unseen, in_chunks, timed
from amortes.errors import DataError
from amortes.random import generator


def score(X: Tensor) -> Tensor:
    """Flat along the second coordinate, but not quite."""
    weight = torch.tensor([1.0, 1e-3], dtype=torch.float64)
    return -((X - 0.3).square() * weight).sum(-1)


@pytest.mark.parametrize("seed", range(3))
def test_highest_climbs_to_the_top(seed: int) -> None:
    X = torch.rand(5, 2, generator=generator(seed), dtype=torch.float64)
    x = highest(score, 2, None, X, seed)
    torch.testing.assert_close(x, torch.full((2,), 0.3, dtype=torch.float64), atol=1e-6, rtol=0)


def test_in_a_pool_seen_points_may_be_recommended_but_not_chosen() -> None:
    pool = torch.tensor([[0.9, 0.0], [0.3, 0.3], [0.4, 0.3]], dtype=torch.float64)
    assert torch.equal(highest(score, 2, pool, pool[1:2], 0), pool[1])
    assert torch.equal(highest_unseen(score, pool, pool[1:2]), pool[2])
    with pytest.raises(DataError, match="all 3 points"):
        highest_unseen(score, pool, pool)


def test_chunks_are_small_and_complete() -> None:
    sizes = []

    def counted(X: Tensor) -> Tensor:
        sizes.append(len(X))
        return score(X)

    X = torch.rand(7, 2, dtype=torch.float64, generator=generator(0))
    torch.testing.assert_close(in_chunks(counted, 3)(X), score(X))
    assert sizes == [3, 3, 1]


def test_timed_returns_the_result() -> None:
    result, seconds = timed(lambda: 3)
    assert result == 3
    assert 0 <= seconds < 1
