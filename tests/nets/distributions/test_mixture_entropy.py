"""Entropies of mixtures against a grid of thousands of nodes, and their gradients likewise."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from amortes.nets.distributions.mixture_entropy import mixture_entropy

Parameters = tuple[Tensor, Tensor, Tensor]


def fine_entropy(log_weights: Tensor, means: Tensor, sds: Tensor, n: int = 601) -> Tensor:
    """Trapezoid over the sorted union of `n` nodes per component on ±9.5 sds, in float64."""
    z = torch.linspace(-9.5, 9.5, n, dtype=torch.float64)
    y = (means.detach()[..., None] + sds.detach()[..., None] * z).flatten(-2).sort(-1).values
    z = (y[..., None] - means[:, None]) / sds[:, None]
    heights = log_weights - sds.log() - 0.5 * math.log(2 * math.pi)
    log_q = torch.logsumexp(heights[:, None] - 0.5 * z.square(), -1)
    mass = torch.trapezoid(log_q.exp(), y)
    return -torch.trapezoid(log_q.exp() * log_q, y) / mass


def similar(normal: Tensor, uniform: Tensor) -> Parameters:
    return normal[0] * 2, normal[1], (0.3 * normal[2]).exp()


def nested(normal: Tensor, uniform: Tensor) -> Parameters:
    wide = (0.3 * normal[2]).exp()
    return normal[0], 0.5 * normal[1], torch.where(uniform < 0.5, 1e-4, 1.0) * wide


def nested_moderately(normal: Tensor, uniform: Tensor) -> Parameters:
    wide = (0.3 * normal[2]).exp()
    return normal[0], 0.7 * normal[1], torch.where(uniform < 0.5, 0.05, 1.0) * wide


def every_scale(normal: Tensor, uniform: Tensor) -> Parameters:
    return normal[0], normal[1], 10 ** (-4 * uniform)


def disjoint(normal: Tensor, uniform: Tensor) -> Parameters:
    places = 30.0 * torch.arange(normal.shape[-1])
    return normal[0], places + normal[1], torch.where(uniform < 0.5, 1e-2, 1.0) * normal[2].exp()


def vanishing(normal: Tensor, uniform: Tensor) -> Parameters:
    return -200 * uniform**2, 2 * normal[1], 10 ** (-2 + normal[2])


FAMILIES = [similar, nested, nested_moderately, every_scale, disjoint, vanishing]
Family = Callable[[Tensor, Tensor], Parameters]


def draw(family: Family, k: int, n: int) -> Parameters:
    generator = torch.Generator().manual_seed(1000 + k)
    normal = torch.randn(3, n, k, generator=generator, dtype=torch.float64)
    uniform = torch.rand(n, k, generator=generator, dtype=torch.float64)
    log_weights, means, sds = family(normal, uniform)
    return torch.log_softmax(log_weights, -1), means, sds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("k", "n"), [(1, 5), (2, 300), (5, 60), (24, 4)])
def test_value_and_gradient(family: Family, k: int, n: int, dtype: torch.dtype) -> None:
    leaves = [t.requires_grad_() for t in draw(family, k, n)]
    sds = leaves[2].detach()

    def with_gradient(
        function: Callable[[Tensor, Tensor, Tensor], Tensor], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        log_weights, means, sds_ = (t.to(dtype) for t in leaves)
        H = function(torch.log_softmax(log_weights, -1), means, sds_)
        assert H.dtype == dtype
        by_weight, by_mean, by_sd = torch.autograd.grad(H.sum(), leaves)
        return H.detach().double(), torch.cat([by_weight, by_mean * sds, by_sd * sds], -1)

    expected, expected_gradient = with_gradient(fine_entropy, torch.float64)
    actual, gradient = with_gradient(mixture_entropy, dtype)
    assert (actual - expected).abs().max() < 7e-4
    error = (gradient - expected_gradient).norm(dim=-1) / expected_gradient.norm(dim=-1)
    assert error.max() < 1e-2


@pytest.mark.parametrize("sd", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_component_is_known(sd: float, dtype: torch.dtype) -> None:
    parameters = [torch.tensor([value], dtype=dtype) for value in (0.0, 0.1, sd)]
    expected = 0.5 * math.log(2 * math.pi * math.e) + math.log(sd)
    assert mixture_entropy(*parameters).item() == pytest.approx(expected, abs=2e-4)


def test_float32_far_apart_and_narrow() -> None:
    # Nodes one hundredth of the narrow sd apart do not exist in float32 around 1000.
    parameters = [
        torch.tensor([math.log(w) for w in (0.5, 0.3, 0.2)]),
        torch.tensor([-1000.0, 1000.0, 0.0]),
        torch.tensor([1e-5, 1e-4, 1.0]),
    ]
    inputs = [p.requires_grad_() for p in parameters]
    weights, sds = (torch.tensor(v).double() for v in ([0.5, 0.3, 0.2], [1e-5, 1e-4, 1.0]))
    known = 0.5 * math.log(2 * math.pi * math.e) + (weights * (sds / weights).log()).sum()
    H = mixture_entropy(*inputs)
    assert H.dtype == torch.float32
    assert H.item() == pytest.approx(known.item(), abs=5e-4)
    (by_sd,) = torch.autograd.grad(H, inputs[2])
    torch.testing.assert_close(by_sd, (weights / sds).float(), rtol=1e-2, atol=0)


def test_no_gradient_is_computed_in_vain() -> None:
    parameters = [t.requires_grad_() for t in draw(similar, 4, 10)]
    with torch.no_grad():
        assert not mixture_entropy(*parameters).requires_grad
    assert mixture_entropy(*parameters).requires_grad


def test_finer_spacing_is_more_accurate() -> None:
    parameters = draw(every_scale, 3, 200)
    exact = fine_entropy(*parameters)
    coarse, fine = (
        (mixture_entropy(*parameters, spacing=spacing) - exact).square().mean().sqrt()
        for spacing in (0.8, 0.3)
    )
    assert fine < 0.2 * coarse


def test_batch_mates_do_not_matter() -> None:
    parts = [draw(family, 6, 20) for family in FAMILIES]
    together = mixture_entropy(*(torch.cat(p) for p in zip(*parts, strict=True)))
    alone = torch.cat(
        [mixture_entropy(*(t[i] for t in p)).view(1) for p in parts for i in range(20)]
    )
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-10)


def test_unit_of_y_does_not_matter() -> None:
    log_weights, means, sds = draw(every_scale, 6, 50)
    H = mixture_entropy(log_weights, means, sds)
    scaled = mixture_entropy(log_weights, 1e5 * means - 7.0, 1e5 * sds)
    torch.testing.assert_close(scaled, H + math.log(1e5), rtol=1e-6, atol=1e-6)


def test_more_mixtures_than_fit_a_chunk() -> None:
    log_weights, means, sds = (t.float() for t in draw(nested_moderately, 16, 40))
    few = mixture_entropy(log_weights, means, sds)
    many = mixture_entropy(*(t.repeat(50, 1).view(50, 40, 16) for t in (log_weights, means, sds)))
    assert many.shape == (50, 40)
    torch.testing.assert_close(many, few.expand(50, 40), rtol=1e-5, atol=1e-5)
