import pytest
import torch

from amortes.nets.distributions import overlap
from amortes.nets.distributions.mixture_entropy import mixture_entropy
from amortes.nets.distributions.overlap import overlap_entropy


def _mixtures(k: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    weights = torch.randn(3, k, 7, 5, generator=rng, dtype=torch.float64).softmax(1)
    means = torch.randn(3, k, 7, 5, generator=rng, dtype=torch.float64)
    variances = torch.randn(3, k, 7, 5, generator=rng, dtype=torch.float64).exp()
    return weights, means, variances


def test_exact_for_one_component_equal_ones_and_far_ones() -> None:
    for k, spread in ((1, 1.0), (6, 0.0), (6, 1e6)):
        weights, means, variances = _mixtures(k, k)
        means, variances = spread * means, variances[:, :1].expand_as(means)
        moved = (t.movedim(1, -1) for t in (weights.log(), means, variances.sqrt()))
        exact = mixture_entropy(*moved)
        assert torch.allclose(overlap_entropy(weights, means, variances), exact, atol=2e-3)


def test_a_close_lower_bound() -> None:
    weights, means, variances = _mixtures(8, 3)
    exact = mixture_entropy(*(t.movedim(1, -1) for t in (weights.log(), means, variances.sqrt())))
    gap = exact - overlap_entropy(weights, means, variances)
    assert gap.min() > -1e-3
    assert gap.max() < 0.3


def test_gradient_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, means, variances = _mixtures(4, 5)
    leaves = (means.requires_grad_(), variances.requires_grad_())
    assert torch.autograd.gradcheck(lambda m, v: overlap_entropy(weights, m, v), leaves)
    whole = overlap_entropy(weights, means, variances)
    monkeypatch.setattr(overlap, "CHUNK", 100)
    assert torch.allclose(overlap_entropy(weights, means, variances), whole)


def test_a_component_without_weight_does_no_harm() -> None:
    weights = torch.tensor([[1.0, 0.0]], dtype=torch.float64)[..., None]
    means = torch.tensor([[0.0, 50.0]], dtype=torch.float64)[..., None].requires_grad_()
    variances = torch.ones_like(means)
    H = overlap_entropy(weights, means, variances)
    assert torch.allclose(H, torch.tensor(overlap.ENTROPY_OF_NORMAL, dtype=torch.float64))
    (slope,) = torch.autograd.grad(H.sum(), means)
    assert torch.equal(slope, torch.zeros_like(slope))
