import pytest
import torch
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.distributions import Predictive, Riemann
from amortes.nets.distributions.base import Affine, Index, expand_to, index_batch
from tests.nets.distributions.conformance import BATCH, PredictiveConformance

BORDERS = torch.tensor([-3.0, -1.0, -0.2, 0.0, 0.4, 1.0, 1.5], dtype=torch.float64)
SCALE, SHIFT = 1.7, -0.3


class TestAffine(PredictiveConformance):
    def make(self, dtype: torch.dtype) -> Predictive:
        generator = torch.Generator().manual_seed(8)
        logits = torch.randn(*BATCH, 6, generator=generator, dtype=torch.float64)
        scale = torch.tensor([SCALE], dtype=torch.float64)
        self.leaves = [t.to(dtype).requires_grad_() for t in (logits, scale)]
        base = Riemann(self.leaves[0], BORDERS)
        return Affine(base, self.leaves[1], torch.tensor(SHIFT, dtype=dtype))

    def parameters(self, predictive: Predictive) -> list[Tensor]:
        return self.leaves

    def edges(self) -> Tensor:
        left, right = torch.linspace(-30, -1, 60).double(), torch.linspace(1, 8, 60).double()
        return SCALE * torch.cat([left[:-1], BORDERS[1:-1], right[1:]]) + SHIFT


def test_rejects_scales_that_are_not_positive() -> None:
    base = Riemann(torch.zeros(2, 6), BORDERS)
    for scale in (0.0, -1.0, torch.nan):
        with pytest.raises(DataError, match="scale must be positive"):
            Affine(base, torch.tensor([1.0, scale]), torch.zeros(2))


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
