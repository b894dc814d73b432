import math

import pytest
import torch
from torch import Tensor

from amortes.nets.distributions import GaussianMixture
from amortes.nets.distributions.mixture_cross_entropy import mixture_cross_entropy


def fine_cross_entropy(q: GaussianMixture, mean: Tensor, sd: Tensor) -> Tensor:
    t = torch.linspace(-9.0, 9.0, 20_001, dtype=torch.float64)
    weights = torch.softmax(-0.5 * t.square(), 0)
    return -(weights @ q.log_prob(mean + sd * t[:, None]))


@pytest.mark.parametrize(
    ("low", "high", "nodes", "tolerance"),
    [(1.0, 10.0, 24, 1e-5), (0.5, 2.0, 24, 1e-4), (0.3, 1.0, 24, 5e-3), (0.1, 1.0, 48, 2e-2)],
)
def test_accuracy_by_width_of_the_components(
    low: float, high: float, nodes: int, tolerance: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(2, 40, 4, generator=generator, dtype=torch.float64)
    widths = low * (high / low) ** torch.rand(40, 4, generator=generator, dtype=torch.float64)
    # The target is N(3, 0.5²); components lie within it.
    q = GaussianMixture(draws[0], 3.0 + 0.5 * draws[1], 0.5 * widths)
    mean, sd = torch.tensor([3.0, 0.5]).double()
    exact = fine_cross_entropy(q, mean, sd)
    target = mean.expand(40), sd.square().expand(40)
    error = mixture_cross_entropy(q.log_weights, q.means, q.sds, *target, nodes=nodes) - exact
    assert error.square().mean().sqrt() < tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sd", [1e-6, 1e-2, 1.0, 100.0])
def test_exact_for_one_component(sd: float, dtype: torch.dtype) -> None:
    q = GaussianMixture(*(torch.tensor([v], dtype=dtype) for v in (0.0, 0.2, sd)))
    mean, variance = 0.5, 0.25
    known = 0.5 * math.log(2 * math.pi) + math.log(sd)
    known += 0.5 * ((mean - 0.2) ** 2 + variance) / sd**2
    actual = q.cross_entropy(torch.tensor(mean, dtype=dtype), torch.tensor(variance, dtype=dtype))
    assert actual.dtype == dtype
    assert actual.item() == pytest.approx(known, rel=1e-5 if dtype == torch.float32 else 1e-9)


def test_all_gradients() -> None:
    generator = torch.Generator().manual_seed(3)
    draws = torch.randn(3, 2, 3, 4, generator=generator, dtype=torch.float64)
    target = torch.rand(2, 2, 3, generator=generator, dtype=torch.float64)
    leaves = [*draws[:2], draws[2].exp(), target[0], target[1] + 0.1]
    for leaf in leaves:
        leaf.requires_grad_()
    assert torch.autograd.gradcheck(mixture_cross_entropy, tuple(leaves))


def test_more_mixtures_than_fit_a_chunk() -> None:
    generator = torch.Generator().manual_seed(4)
    draws = torch.randn(3, 7, 16, generator=generator)
    parameters = (torch.log_softmax(draws[0], -1), draws[1], draws[2].exp())
    few = mixture_cross_entropy(*parameters, torch.zeros(7), torch.ones(7))
    inputs = [*(p.expand(200, 7, 16) for p in parameters), torch.zeros(200, 7), torch.ones(200, 7)]
    many = mixture_cross_entropy(*inputs)
    torch.testing.assert_close(many, few.expand(200, 7))
