import numpy as np
import pytest
import torch

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.gains.gain_features import (
    FURTHEST,
    NUM_PAIR,
    NUM_QUERY,
    GainFeatures,
    _cut_off,
)
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.numpy_kernels import Array
from amortes.nets.kernel.optimum.representers import RepresenterConfig, joint_draws
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch

CONFIG = RepresenterConfig(count=12, num_global=32, per_centre=4)


@pytest.fixture(params=["robust", "real"])
def conditioned(task: TaskBatch, request: pytest.FixtureRequest) -> Conditioned:
    """Eight particles."""
    prior = PRIORS[request.param]
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=2))
    return condition(prior, particles, task.X, task.y)


@pytest.fixture
def features(conditioned: Conditioned) -> GainFeatures:
    return GainFeatures(conditioned, joint_draws(conditioned, CONFIG))


def test_moments_are_those_of_the_posterior(
    conditioned: Conditioned, features: GainFeatures, task: TaskBatch
) -> None:
    (found, mean, variance), _ = features.forward(task.Xq.numpy())
    at = conditioned.moments(task.Xq)
    assert found.shape == (*mean.shape, NUM_QUERY)
    np.testing.assert_allclose(mean, at.mean.numpy())
    np.testing.assert_allclose(variance, at.variance.numpy(), rtol=1e-6)


def test_correlations_are_those_of_the_posterior(
    conditioned: Conditioned, features: GainFeatures, task: TaskBatch
) -> None:
    draws = joint_draws(conditioned, CONFIG)
    (found, _, _), _ = features.forward(task.Xq.numpy())
    at, points = conditioned.moments(task.Xq), draws.representers.moments
    rho = conditioned.covariance(at, points) / (at.sd[..., None] * points.sd[:, :, None])
    share = draws.representers.share[:, :, None]
    torch.testing.assert_close(share.sum(-1), torch.ones_like(share.sum(-1)))
    np.testing.assert_allclose(found[..., 2], (share * rho.square()).sum(-1).numpy(), atol=1e-3)
    np.testing.assert_allclose(found[..., 3], (share * rho.abs()).sum(-1).numpy(), atol=1e-3)


def test_derivatives_are_finite_differences(features: GainFeatures, task: TaskBatch) -> None:
    X = task.Xq.clamp(0.05, 0.95).numpy()
    rng = np.random.default_rng(1)
    results, pull_back = features.forward(X)
    by = [rng.standard_normal(t.shape) for t in results]

    def total(X: Array) -> Array:
        features_, mean, variance = features.forward(X)[0]
        whole: Array = (by[0] * features_).sum((1, 3)) + (by[1] * mean + by[2] * variance).sum(1)
        return whole

    along = rng.standard_normal(X.shape)
    slope = (total(X + 1e-6 * along) - total(X - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose((pull_back(*by) * along).sum(-1), slope, rtol=1e-4, atol=1e-4)


def test_truncation_is_that_of_the_normal_distribution() -> None:
    z = np.linspace(-FURTHEST, FURTHEST, 101)
    for ours, exact in zip(_cut_off(z), cut_off(torch.from_numpy(z)), strict=True):
        np.testing.assert_allclose(ours, exact.numpy(), rtol=1e-10, atol=1e-14)


def test_pairs_are_distances(conditioned: Conditioned, features: GainFeatures) -> None:
    pairs = features.pairs()
    k = conditioned.weights.shape[1]
    assert pairs.shape == (3, k, k, NUM_PAIR)
    assert np.isfinite(pairs).all()
    np.testing.assert_allclose(pairs, pairs.swapaxes(1, 2), atol=1e-9)
    same = pairs[:, np.arange(k), np.arange(k), :24]  # a particle and itself
    np.testing.assert_allclose(same, 0.0, atol=2e-3)
    lengths = conditioned.particles.hyper.lengthscale.log()
    square = (lengths[:, 0] - lengths[:, 1]).square().sum(-1)
    np.testing.assert_allclose(pairs[:, 0, 1, 0], square.sqrt().numpy())
