import numpy as np
import pytest
import torch

from amortes.nets.distributions import overlap
from amortes.nets.distributions.mixture_entropy import mixture_entropy
from amortes.nets.distributions.overlap import Array, overlap_entropy


def _mixtures(k: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    weights, means, variances = rng.standard_normal((3, 3, k, 7, 5))
    weights = np.exp(weights)
    return weights / weights.sum(1, keepdims=True), means, np.exp(variances)


def _exact(weights: Array, means: Array, variances: Array) -> Array:
    parameters = (np.log(weights), means, np.sqrt(variances))
    moved = (torch.from_numpy(np.moveaxis(t, 1, -1).copy()) for t in parameters)
    return mixture_entropy(*moved).numpy()


def test_exact_for_one_component_equal_ones_and_far_ones() -> None:
    for k, spread in ((1, 1.0), (6, 0.0), (6, 1e6)):
        weights, means, variances = _mixtures(k, k)
        means = spread * means
        variances = np.broadcast_to(variances[:, :1], means.shape)
        H, _, _ = overlap_entropy(weights, means, variances, gradient=False)
        np.testing.assert_allclose(H, _exact(weights, means, variances), atol=2e-3)


def test_a_close_lower_bound() -> None:
    mixtures = _mixtures(8, 3)
    H, _, _ = overlap_entropy(*mixtures, gradient=False)
    gap = _exact(*mixtures) - H
    assert gap.min() > -1e-3
    assert gap.max() < 0.3


@pytest.mark.parametrize("k", [1, 4])
def test_values_and_gradients_are_those_of_the_formula(k: int) -> None:
    weights, means, variances = _mixtures(k, 5)
    w = torch.from_numpy(weights)
    m, v = (torch.from_numpy(t).requires_grad_() for t in (means, variances))
    total = v.unsqueeze(1) + v.unsqueeze(2)
    square = (m.unsqueeze(1) - m.unsqueeze(2)).square()
    roots = (4.0 * v.unsqueeze(1) * v.unsqueeze(2)) ** 0.25
    density = (w.unsqueeze(1) * roots / total.sqrt() * (-0.25 * square / total).exp()).sum(2)
    expected = overlap.ENTROPY_OF_NORMAL + (w * (0.5 * v.log() - density.log())).sum(1)
    found = overlap_entropy(weights, means, variances, gradient=True)
    slopes = torch.autograd.grad(expected.sum(), (m, v))
    for ours, true in zip(found, (expected.detach(), *slopes), strict=True):
        np.testing.assert_allclose(ours, true.numpy(), rtol=1e-9, atol=1e-12)


def test_a_component_without_weight_does_no_harm() -> None:
    weights = np.array([[1.0, 0.0]])[..., None]
    means = np.array([[0.0, 50.0]])[..., None]
    H, by_mean, _ = overlap_entropy(weights, means, np.ones_like(means), gradient=True)
    np.testing.assert_allclose(H, overlap.ENTROPY_OF_NORMAL)
    assert not by_mean.any()
