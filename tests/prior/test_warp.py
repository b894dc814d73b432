import math

import pytest
import torch
from torch import Tensor

from amortes.prior.warp import LAST, SOFTNESS, mirrored, unwarp, warp
from amortes.random import generator


def some_parameters(*shape: int, spread: float = 1.0) -> Tensor:
    """Shapes and shifts, `... x 2 x 3`."""
    return spread * torch.randn(*shape, 2, 3, generator=generator(1), dtype=torch.float64)


def points(*shape: int) -> Tensor:
    return torch.rand(*shape, 3, generator=generator(2), dtype=torch.float64)


def test_the_formula_of_the_module() -> None:
    parameters, X = some_parameters(), points(50)
    c, s = parameters[:, None].unbind(0)

    def S(x: Tensor) -> Tensor:
        odds = (x + SOFTNESS) / (1.0 + SOFTNESS - x)
        return 1.0 / (1.0 + torch.exp(-(c.exp() * odds.log() + s)))

    zero, one = torch.zeros(1, 3, dtype=torch.float64), torch.ones(1, 3, dtype=torch.float64)
    expected = (S(X) - S(zero)) / (S(one) - S(zero))
    assert torch.allclose(warp(X, parameters), expected, atol=1e-12)
    assert math.log((1.0 + SOFTNESS) / SOFTNESS) == LAST


def test_zero_is_the_identity() -> None:
    X = points(50)
    zero = torch.zeros(2, 3, dtype=torch.float64)
    assert torch.allclose(warp(X, zero), X, atol=1e-14)
    assert torch.allclose(unwarp(X, zero), X, atol=1e-14)


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_warps_map_the_cube_onto_itself_and_rise(spread: float) -> None:
    parameters = some_parameters(40, spread=spread)
    X = torch.linspace(0.0, 1.0, 101, dtype=torch.float64)[:, None].expand(40, 101, 3)
    U = warp(X, parameters)
    assert torch.allclose(U[:, 0], torch.zeros_like(U[:, 0]), atol=1e-15)
    assert torch.allclose(U[:, -1], torch.ones_like(U[:, -1]), atol=1e-12)
    # Strong warps are flat at an edge, to the last digit.
    assert (U.diff(dim=1) > 0.0).all() if spread == 0.5 else (U.diff(dim=1) >= 0.0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_inverse(dtype: torch.dtype) -> None:
    parameters, X = some_parameters(40, spread=0.7).to(dtype), points(40, 30).to(dtype)
    X[:, 0], X[:, 1] = 0.0, 1.0
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    U = warp(X, parameters)
    assert U.dtype == dtype
    back = unwarp(U, parameters)
    # What counts is the warped coordinate: where a warp is flat, x itself is less certain.
    assert torch.allclose(warp(back, parameters), U, atol=tolerance)
    # Edges are edges: whether an optimum is on a face is decided with a tolerance of 1e-6.
    assert back[:, 0].max() < 1e-7
    assert back[:, 1].min() > 1.0 - 1e-7
    if dtype == torch.float64:
        assert torch.allclose(back, X, atol=1e-8)
    assert ((back >= 0.0) & (back <= 1.0)).all()


def test_slopes_at_the_edges_are_bounded() -> None:
    for shape, shift in ((0.0, 0.0), (-0.7, 0.0), (-0.7, 2.0), (0.7, -2.0), (0.35, 0.8)):
        parameters = torch.tensor([[shape], [shift]], dtype=torch.float64)
        edges = torch.tensor([[0.0], [1.0]], dtype=torch.float64).requires_grad_()
        (slopes,) = torch.autograd.grad(warp(edges, parameters).sum(), edges)
        assert slopes.max() < 5.5 * math.exp(abs(shift))


def test_mirror_images() -> None:
    parameters, X = some_parameters(4), points(4, 20)
    mask = torch.tensor([[True, False, True]] * 4)
    other = mirrored(parameters, mask)
    image = 1.0 - warp(1.0 - X, parameters)
    expected = torch.where(mask[:, None], image, warp(X, parameters))
    assert torch.allclose(warp(X, other), expected, atol=1e-11)
    assert torch.equal(mirrored(other, mask), parameters)


def test_what_the_parameters_mean() -> None:
    quarter = torch.tensor([[0.25]], dtype=torch.float64)

    def at_quarter(shape: float, shift: float) -> float:
        return float(warp(quarter, torch.tensor([[shape], [shift]], dtype=torch.float64)))

    # A positive shift moves the variation towards zero, as on a log scale.
    assert at_quarter(0.0, 1.0) > 0.35
    assert at_quarter(0.0, -1.0) < 0.15
    # c > 0 moves it to the middle, c < 0 to both edges.
    assert at_quarter(0.5, 0.0) < 0.2 < 0.3 < at_quarter(-0.5, 0.0)


def test_leading_shapes_broadcast() -> None:
    parameters, X = some_parameters(5, 4), points(5, 1, 7)
    assert warp(X, parameters).shape == (5, 4, 7, 3)
    assert torch.allclose(warp(X, parameters)[2, 3], warp(X[2, 0], parameters[2, 3]))
