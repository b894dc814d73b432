import pytest
import torch

from amortes.nets.distributions.base import Index, expand_to, index_batch


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(1, 3), ..., None, torch.tensor([2, 0]), (1, 2), (..., 1), (slice(None), None, 1)],
)
def test_indexing_leaves_the_last_dimension_alone(index: Index | tuple[Index, ...]) -> None:
    parameter = torch.arange(60).reshape(4, 3, 5)
    picked = index_batch(parameter, index)
    expected = torch.stack([parameter[..., i][index] for i in range(5)], -1)
    assert torch.equal(picked, expected)


def test_expand_to() -> None:
    x = torch.zeros(3, 1)
    assert expand_to(x, torch.Size([2]), torch.Size([4, 1, 1])).shape == (4, 3, 2)
