import pytest
import torch
from torch import Tensor

from amortes.acquisition import maximise_pool
from amortes.acquisition.pool import CHUNK, SAME, evaluate, is_among
from amortes.errors import DataError
from amortes.random import generator

POOL = torch.rand(3 * CHUNK + 7, 2, generator=generator(0), dtype=torch.float64)


def hill(X: Tensor) -> Tensor:
    return -(X - 0.5).square().sum(-1)


def test_the_best_of_all_in_chunks() -> None:
    largest = []

    def score(X: Tensor) -> Tensor:
        largest.append(len(X))
        assert not torch.is_grad_enabled()
        return hill(X)

    found = maximise_pool(score, POOL)
    values = hill(POOL)
    assert found.index == int(values.argmax())
    assert found.value == float(values.max())
    assert torch.equal(found.x, POOL[found.index])
    assert found.fresh
    assert max(largest) == CHUNK
    assert sum(largest) == len(POOL)


def test_points_to_exclude_until_there_are_no_others() -> None:
    pool = POOL[:5]
    order = hill(pool).argsort(descending=True).tolist()
    taken = pool[order[:2]]
    found = maximise_pool(hill, pool, exclude=taken + 0.5 * SAME)
    assert (found.index, found.fresh) == (order[2], True)
    again = maximise_pool(hill, pool, exclude=pool)
    assert (again.index, again.fresh) == (order[0], False)


def test_scores_that_are_not_numbers_lose() -> None:
    def broken(X: Tensor) -> Tensor:
        return torch.where(X[:, 0] < 0.9, torch.nan, hill(X))

    assert maximise_pool(broken, POOL).x[0] >= 0.9
    assert evaluate(broken, POOL).isneginf().any()
    with pytest.raises(DataError, match="NaN"):
        maximise_pool(lambda X: X[:, 0] * torch.nan, POOL)


def test_is_among() -> None:
    assert is_among(POOL, None).sum() == 0
    assert is_among(POOL, POOL[:0]).sum() == 0
    assert is_among(POOL, POOL[10:13]).nonzero().flatten().tolist() == [10, 11, 12]
    assert not is_among(POOL[:1], POOL[:1] + 1e-6).any()


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (POOL[:0], "empty"),
        (POOL[0], "float64 matrix"),
        (POOL.float(), "torch.float32"),
        (POOL / 0.0, "NaN or infinity"),
    ],
)
def test_bad_pools(pool: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        maximise_pool(hill, pool)
