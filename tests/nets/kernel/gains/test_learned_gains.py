import numpy as np
import pytest
import torch
from torch import nn

from amortes.nets.base import GAINS
from amortes.nets.distributions.mixture_entropy import mixture_entropy
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.gains import learned_gains
from amortes.nets.kernel.gains.gain_network import GainConfig, GainNetwork
from amortes.nets.kernel.gains.learned_gains import ENTROPY_OF_NORMAL, LearnedGains, overlap_entropy
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.numpy_kernels import Array
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator
from amortes.training.objectives import overlap_entropies


def conditioned_on(task: TaskBatch, prior: str) -> Conditioned:
    particles = infer_particles(PRIORS[prior], task.X, task.y, ParticleConfig(count=2))
    return condition(PRIORS[prior], particles, task.X, task.y)


@pytest.fixture
def gain_network() -> GainNetwork:
    """With weights that are not those it begins with."""
    made = GainNetwork(GainConfig(width=8, pair_width=8))
    rng = generator(3)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3, generator=rng)
    return made.requires_grad_(False).eval()


@pytest.mark.parametrize(("prior", "d", "n"), [("robust", 2, 7), ("real", 1, 3), ("real", 6, 30)])
def test_gradients_are_finite_differences(
    gain_network: GainNetwork, prior: str, d: int, n: int
) -> None:
    config = TaskConfig(batch_size=2, num_queries=7)
    task = TaskStream(PRIORS[prior], 5, config).batch_of(0, d, n)
    found = LearnedGains(conditioned_on(task, prior), gain_network)
    X = task.Xq.clamp(0.02, 0.98)
    along = torch.randn(X.shape, generator=generator(1), dtype=torch.float64)
    for name in GAINS:
        value, gradient = found.mean_with_gradient(name, X)
        assert value.shape == (2, 7)
        up, down = (found.mean(name, X + step * along) for step in (1e-6, -1e-6))
        slope = (gradient * along).sum(-1)
        torch.testing.assert_close(slope, (up - down) / 2e-6, rtol=1e-4, atol=1e-4)
        Xq = X.clone().requires_grad_()
        by_torch = torch.autograd.grad(found.mean(name, Xq).sum(), Xq)[0]
        torch.testing.assert_close(by_torch, gradient)


def test_queries_are_valued_one_by_one(
    gain_network: GainNetwork, task: TaskBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LearnedGains(conditioned_on(task, "robust"), gain_network)
    value, gradient = found.mean_with_gradient("jes", task.Xq)
    monkeypatch.setattr(learned_gains, "AT_ONCE", 1)
    for ours, expected in zip(
        found.mean_with_gradient("jes", task.Xq), (value, gradient), strict=True
    ):
        torch.testing.assert_close(ours, expected)
    for i in range(3):
        alone = LearnedGains(conditioned_on(task, "robust").dataset(i), gain_network)
        torch.testing.assert_close(alone.mean("jes", task.Xq[i : i + 1]), value[i : i + 1])


def test_a_particle_that_is_alone_learns_by_its_variance(gain_network: GainNetwork) -> None:
    prior = PRIORS["paper-1d"]  # known hyperparameters
    task = TaskStream(prior, 2, TaskConfig(batch_size=1, num_queries=9)).batch_of(0, 1, 6)
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    conditioned = condition(prior, particles, task.X, task.y).thinned(1)
    found = LearnedGains(conditioned, gain_network)
    (features, _, variance), _ = found.features.forward(task.Xq.numpy())
    _, left = gain_network.moments(torch.from_numpy(features).float())
    noise = float(conditioned.noise_variance)
    told = left[:, GAINS.index("jes")].double().numpy() * variance + noise
    expected = 0.5 * np.log((variance + noise) / told)[:, 0]
    np.testing.assert_allclose(found.mean("jes", task.Xq).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_entropies_with_weights_of_pairs_are_those_of_the_loss() -> None:
    weights, means, variances = (t[..., 0] for t in _mixtures(5, 2))  # 3 x 5 x 7
    weights = weights[..., :1]
    rng = np.random.default_rng(1)
    given = np.exp(rng.standard_normal((3, 5, 5)))
    given /= given.sum(-1, keepdims=True)
    H, _, _ = overlap_entropy(weights, means, variances, gradient=False, given=given)
    w, T, m, v = (torch.from_numpy(t.copy()) for t in (weights[..., 0], given, means, variances))
    of_loss = overlap_entropies(w, T[:, None], m[:, None], v[:, None])[:, 0]
    np.testing.assert_allclose(H - ENTROPY_OF_NORMAL, of_loss.numpy(), rtol=1e-10)
    plain = np.broadcast_to(weights[:, None, :, 0], given.shape)
    for found, expected in zip(
        overlap_entropy(weights, means, variances, gradient=True, given=plain),
        overlap_entropy(weights, means, variances, gradient=True),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected)


def _mixtures(k: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    weights, means, variances = rng.standard_normal((3, 3, k, 7, 5))
    weights = np.exp(weights)
    return weights / weights.sum(1, keepdims=True), means, np.exp(variances)


def _exact(weights: Array, means: Array, variances: Array) -> Array:
    parameters = (np.log(weights), means, np.sqrt(variances))
    moved = (torch.from_numpy(np.moveaxis(t, 1, -1).copy()) for t in parameters)
    return mixture_entropy(*moved).numpy()


def test_entropies_are_exact_for_one_component_equal_ones_and_far_ones() -> None:
    for k, spread in ((1, 1.0), (6, 0.0), (6, 1e6)):
        weights, means, variances = _mixtures(k, k)
        means = spread * means
        variances = np.broadcast_to(variances[:, :1], means.shape)
        H, _, _ = overlap_entropy(weights, means, variances, gradient=False)
        np.testing.assert_allclose(H, _exact(weights, means, variances), atol=2e-3)


def test_entropies_are_close_lower_bounds() -> None:
    mixtures = _mixtures(8, 3)
    H, _, _ = overlap_entropy(*mixtures, gradient=False)
    gap = _exact(*mixtures) - H
    assert gap.min() > -1e-3
    assert gap.max() < 0.3


@pytest.mark.parametrize("k", [1, 4])
def test_entropies_and_gradients_are_those_of_the_formula(k: int) -> None:
    weights, means, variances = _mixtures(k, 5)
    w = torch.from_numpy(weights)
    m, v = (torch.from_numpy(t).requires_grad_() for t in (means, variances))
    total = v.unsqueeze(1) + v.unsqueeze(2)
    square = (m.unsqueeze(1) - m.unsqueeze(2)).square()
    roots = (4.0 * v.unsqueeze(1) * v.unsqueeze(2)) ** 0.25
    density = (w.unsqueeze(1) * roots / total.sqrt() * (-0.25 * square / total).exp()).sum(2)
    expected = ENTROPY_OF_NORMAL + (w * (0.5 * v.log() - density.log())).sum(1)
    found = overlap_entropy(weights, means, variances, gradient=True)
    slopes = torch.autograd.grad(expected.sum(), (m, v))
    for ours, true in zip(found, (expected.detach(), *slopes), strict=True):
        np.testing.assert_allclose(ours, true.numpy(), rtol=1e-9, atol=1e-12)


def test_a_component_without_weight_does_no_harm() -> None:
    weights = np.array([[1.0, 0.0]])[..., None]
    means = np.array([[0.0, 50.0]])[..., None]
    H, by_mean, _ = overlap_entropy(weights, means, np.ones_like(means), gradient=True)
    np.testing.assert_allclose(H, ENTROPY_OF_NORMAL)
    assert not by_mean.any()
