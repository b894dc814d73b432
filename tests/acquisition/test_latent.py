import pytest
import torch

from amortes.acquisition import Fitted, latent
from amortes.acquisition.latent import (
    correlation,
    lengthscale,
    noise_sd,
    observed_mean,
    rough_moments,
    without_noise,
)
from amortes.nets.base import Hint
from amortes.nets.distributions import Riemann, asinh_borders
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.conditioning import SHORTEST
from amortes.random import generator
from tests.acquisition.conftest import data

Q = torch.rand(2, 4, 2, generator=generator(5), dtype=torch.float64)


def test_noise_is_taken_out_exactly(network: KernelNetwork) -> None:
    X, y = data(2, 8)
    state = network.condition(X[None], ((y - y.mean()) / y.std())[None])
    f = without_noise(state, network.predict(state, Q[:1]))
    moments = state.conditioned.moments(Q[:1])
    w = state.conditioned.particles.log_weights.exp()[..., None]
    mean = (w * moments.mean).sum(1)
    variance = (w * (moments.variance + (moments.mean - mean[:, None]).square())).sum(1)
    assert torch.allclose(f.mean, mean)
    assert torch.allclose(f.variance, variance)


def test_the_learned_correction_and_a_hint_keep_their_shape(network: KernelNetwork) -> None:
    X, y = data(2, 8)
    state = network.condition(X[None], ((y - y.mean()) / y.std())[None])
    hint = Hint(f=torch.tensor([2.5], dtype=torch.float64))
    network.use_correction = True
    try:
        noisy = network.predict(state, Q[:1], hint)
    finally:
        network.use_correction = False
    f = without_noise(state, noisy)
    least = state.conditioned.noise_variance.min()
    assert torch.allclose(f.mean, noisy.mean, rtol=1e-12)
    assert (f.variance <= noisy.variance - 0.99 * least).all()


def test_a_network_that_does_not_know_the_noise_is_left_alone() -> None:
    bars = Riemann(torch.zeros(1, 3, 20, dtype=torch.float64), asinh_borders(20, 3.0, 1.0))
    assert without_noise(object(), bars) is bars
    assert correlation(object(), Q, noise=True) is None


@pytest.mark.parametrize("noise", [False, True])
def test_correlations_by_brute_force(network: KernelNetwork, noise: bool) -> None:
    X, y = data(2, 8)
    state = network.condition(X[None], ((y - y.mean()) / y.std())[None])
    particles = state.conditioned.particles
    eye = torch.eye(12, dtype=torch.float64)
    for b in range(2):
        everything = torch.cat([X, Q[b]])
        expected = torch.zeros(4, 4, dtype=torch.float64)
        for p, weight in enumerate(particles.log_weights[0].exp()):
            hyper = particles.hyper[0, p]
            r2 = ((everything[:, None] - everything) / hyper.lengthscale).square().sum(-1)
            K = hyper.output_variance * (-0.5 * r2).exp() + network.prior.mean.scale**2
            K += hyper.noise_sd.square() * eye
            # The inverse of a block of the precision matrix is the conditional covariance.
            covariance = torch.linalg.inv(torch.linalg.inv(K)[8:, 8:])
            if not noise:
                covariance -= hyper.noise_sd.square() * eye[:4, :4]
            sd = covariance.diagonal().sqrt()
            expected += weight * covariance / sd / sd[:, None]
        found = correlation(state, Q, noise=noise)
        assert found is not None
        assert torch.allclose(found[b], expected, atol=1e-5)


def test_rough_moments_resemble_the_latent_ones(network: KernelNetwork) -> None:
    X, y = data(3, 20)
    points = torch.rand(3000, 3, generator=generator(8), dtype=torch.float64)
    for maximise in (True, False):
        fitted = Fitted(network, X, y, maximise=maximise)
        rough = fitted.rough_moments(points)
        assert rough is not None
        exact = fitted.units.to_utility(fitted._latent(points))
        for ours, theirs in zip(rough, (exact.mean, exact.variance.sqrt()), strict=True):
            assert ours.shape == (3000,)
            assert torch.corrcoef(torch.stack([ours, theirs]))[0, 1] > 0.9
    assert fitted.hinted(f=60.0).rough_moments(points) is None
    assert rough_moments(object(), points) is None


@pytest.mark.parametrize("maximise", [True, False])
def test_noise_and_means_at_observed_points_are_those_of_predictions(
    network: KernelNetwork, maximise: bool
) -> None:
    X, y = data(3, 20)
    fitted = Fitted(network, X, y, Q[:, :2].flatten()[None, :3], maximise=maximise)
    noise = fitted.predict(X).variance - fitted.latent(X).variance
    assert fitted.noise_sd == pytest.approx(float(noise.mean().sqrt()))
    means = observed_mean(fitted._state)
    assert means is not None
    expected = fitted.units.to_network(fitted.posterior_mean(X))
    assert torch.allclose(means, expected, atol=1e-8)
    assert observed_mean(object()) is None
    assert noise_sd(object()) is None


def test_lengthscales_tell_short_from_long(network: KernelNetwork) -> None:
    X = torch.rand(40, 3, generator=generator(9), dtype=torch.float64)
    fitted = Fitted(network, X, (9.0 * X[:, 0]).sin() + X[:, 1])
    scale = fitted.lengthscale
    assert scale is not None
    assert int(scale.argmin()) == 0
    assert bool(((scale >= SHORTEST) & (scale <= 1.0)).all())
    assert lengthscale(object()) is None


def test_rough_moments_do_not_depend_on_chunks(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(2, 8)
    points = torch.rand(50, 2, generator=generator(7), dtype=torch.float64)
    fitted = Fitted(network, X, y)
    whole = fitted.rough_moments(points)
    monkeypatch.setattr(latent, "CHUNK", 1)  # less than what one point takes
    parts = fitted.rough_moments(points)
    assert whole is not None
    assert parts is not None
    for a, b in zip(whole, parts, strict=True):
        assert b.shape == (50,)
        assert torch.allclose(a, b)
