import pytest
import torch
from torch import Tensor

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.below import below

FLOOR = torch.tensor(1e-9, dtype=torch.float64)


def by_graph(
    m: Tensor, v: Tensor, c: Tensor, star_mean: Tensor, star_variance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The formulas of the module, differentiated by autograd."""
    gap = (v + star_variance - 2.0 * c).clamp_min(FLOOR).sqrt()
    z = (star_mean - m) / gap
    hazard, distance, _ = cut_off(z)
    slope = (c - v) / gap
    variance = v - slope.square() * hazard * distance
    return m + slope * hazard, variance.clamp_min(FLOOR), z


@pytest.mark.parametrize("shift", [0.0, 3.0, -20.0, 40.0])
def test_values_and_gradients_are_those_of_the_formulas(shift: float) -> None:
    rng = torch.Generator().manual_seed(4)
    a, b = torch.randn(2, 5, 7, 3, generator=rng, dtype=torch.float64)
    v = (a.square() + 0.1).requires_grad_()
    c = (0.5 * a * b).requires_grad_()
    m = torch.randn(5, 7, 3, generator=rng, dtype=torch.float64).requires_grad_()
    star_mean = shift + torch.randn(5, 1, 3, generator=rng, dtype=torch.float64)
    star_variance = b.square().amax(1, keepdim=True) + 0.1
    found = below(m, v, c, star_mean, star_variance, FLOOR)
    expected = by_graph(m, v, c, star_mean, star_variance)
    weights = torch.randn(3, 5, 7, 3, generator=rng, dtype=torch.float64)
    gradients = [
        torch.autograd.grad([*moments], [m, v, c], [*weights]) for moments in (found, expected)
    ]
    for actual, true in zip((*found, *gradients[0]), (*expected, *gradients[1]), strict=True):
        assert torch.allclose(actual, true, rtol=1e-9, atol=1e-10)


def test_floors_have_no_slope() -> None:
    # x is x* itself: the gap has no variance, whatever m, v and c are.
    m, v, c = (torch.full((1,), t, dtype=torch.float64).requires_grad_() for t in (0.3, 0.7, 0.7))
    star = torch.tensor([0.3], dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64)
    _, variance, _ = below(m, v, c, *star, FLOOR)
    by_v, by_c = torch.autograd.grad(variance.sum(), [v, c])
    assert by_v.isfinite().all()
    assert by_c.isfinite().all()
