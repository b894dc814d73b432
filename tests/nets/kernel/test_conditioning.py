import dataclasses
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import ROUGHLY, VARIANCE_FLOOR, Conditioned, condition
from amortes.nets.kernel.hyperparameters.hyper_posterior import observed_covariance
from amortes.nets.kernel.hyperparameters.inference import infer, infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.prior.gp import PRIORS, Hyperparameters, Marginal
from amortes.prior.kernels import covariance
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch
from amortes.random import generator

PRIOR = PRIORS["robust"]


@pytest.mark.parametrize("name", ["robust", "real"])
def test_moments_are_the_exact_posterior_when_the_mean_is_known(task: TaskBatch, name: str) -> None:
    prior = dataclasses.replace(PRIORS[name], mean=Marginal.fixed(0.3))
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=4))
    at = condition(prior, particles, task.X, task.y).moments(task.Xq)
    for p in range(particles.log_weights.shape[1]):
        hyper = particles.hyper[:, p]
        mean, variance = exact_posterior(prior.kernel, hyper, task.X, task.y, task.Xq)
        assert torch.allclose(at.mean[:, p], mean, atol=1e-7)
        assert torch.allclose(at.variance[:, p], variance, atol=1e-7)


def test_the_unknown_mean_is_integrated_out(task: TaskBatch) -> None:
    # Average the exact posterior over the mean's own posterior, by quadrature.
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=2))
    conditioned = condition(PRIOR, particles, task.X, task.y)
    at = conditioned.moments(task.Xq)
    offsets = torch.linspace(-2.5, 2.5, 801, dtype=torch.float64)
    hyper = particles.hyper[:, 0]
    means, variances, weights = [], [], []
    for offset in offsets:
        shifted = dataclasses.replace(hyper, mean=torch.full_like(hyper.mean, offset))
        m, v = exact_posterior(PRIOR.kernel, shifted, task.X, task.y, task.Xq)
        means.append(m)
        variances.append(v)
        weights.append(_log_marginal(shifted, task) - 0.5 * (offset / 0.5) ** 2)
    w = torch.stack(weights).softmax(0)[..., None]
    m, v = torch.stack(means), torch.stack(variances)
    mean = (w * m).sum(0)
    assert torch.allclose(at.mean[:, 0], mean, atol=1e-5)
    total = (w * (v + m.square())).sum(0) - mean.square()
    assert torch.allclose(at.variance[:, 0], total, atol=1e-5)


def _log_marginal(hyper: Hyperparameters, task: TaskBatch) -> torch.Tensor:
    n = task.X.shape[1]
    K = covariance(PRIOR.kernel, hyper, task.X, task.X)
    K = K + hyper.noise_sd.square()[:, None, None] * torch.eye(n, dtype=K.dtype)
    r = (task.y - hyper.mean[:, None])[..., None]
    square = (r * torch.linalg.solve(K, r)).sum((-1, -2))
    log_density: torch.Tensor = -0.5 * (square + torch.linalg.slogdet(K)[1])
    return log_density


def test_pending_points_shrink_variances_like_observations_and_leave_means(task: TaskBatch) -> None:
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=3))
    plain = condition(PRIOR, particles, task.X, task.y).moments(task.Xq)
    pending = task.Xq[:, :2]
    waiting = condition(PRIOR, particles, task.X, task.y).with_pending(pending).moments(task.Xq)
    X = torch.cat([task.X, pending], dim=1)
    y = torch.cat([task.y, torch.zeros(3, 2, dtype=torch.float64)], dim=1)
    observed = condition(PRIOR, particles, X, y).moments(task.Xq)
    assert torch.allclose(waiting.mean, plain.mean, atol=1e-9)
    assert torch.allclose(waiting.variance, observed.variance, atol=1e-9)
    assert (waiting.variance <= plain.variance + 1e-12).all()


def test_covariances_agree_with_conditioning_on_one_more_point(task: TaskBatch) -> None:
    # Observing a point without noise removes cov^2 / var from the variance elsewhere.
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=3))
    conditioned = condition(PRIOR, particles, task.X, task.y)
    at = conditioned.moments(task.Xq)
    cov = conditioned.covariance(at, at)
    assert torch.allclose(cov.diagonal(dim1=-2, dim2=-1), at.variance, atol=1e-8)
    assert torch.allclose(cov, cov.mT, atol=1e-10)
    noise = conditioned.noise_variance[..., None]
    expected = at.variance - cov[..., 0].square() / (at.variance[..., :1] + noise)
    more = conditioned.with_pending(task.Xq[:, :1]).moments(task.Xq)
    assert torch.allclose(more.variance, expected, atol=1e-7)


def test_kriging_believer_is_observing_what_is_expected(task: TaskBatch) -> None:
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=4))
    pending = task.Xq[:, :2]
    waiting = condition(PRIOR, particles, task.X, task.y).with_pending(pending)
    weights = particles.log_weights.exp()[..., None]
    expected = (weights * waiting.moments(pending).mean).sum(1)
    X, y = torch.cat([task.X, pending], dim=1), torch.cat([task.y, expected], dim=1)
    told, believed = condition(PRIOR, particles, X, y), waiting.kriging_believer()
    assert torch.allclose(believed.moments(task.Xq).mean, told.moments(task.Xq).mean)
    assert torch.allclose(believed.moments(task.Xq).variance, told.moments(task.Xq).variance)
    # Particles agree about pending points better than before.
    apart = (waiting.moments(pending).mean - expected[:, None]).square().sum()
    assert (believed.moments(pending).mean - expected[:, None]).square().sum() < 0.5 * apart
    alone = condition(PRIOR, particles, task.X, task.y)
    assert alone.kriging_believer() is alone


def test_variances_without_noise_are_those_of_forty_digits() -> None:
    points = torch.rand(1, 85, 2, generator=generator(2), dtype=torch.float64)
    X, Xq = points[:, :80], points[:, 80:]
    y = (3.0 * X).sin().sum(-1)
    particles = infer_particles(PRIOR, X, y, ParticleConfig(count=4, steps=30))
    conditioned = condition(PRIOR, particles, X, y)
    p = int(particles.log_weights.argmax())
    variance = conditioned.moments(Xq).variance[0, p]
    expected = _variance_in_decimals(conditioned, p, Xq)
    assert (expected < 1e-9).sum() >= 4
    floor = VARIANCE_FLOOR * float(conditioned.prior_variance[0, p])
    assert (expected > floor).sum() >= 2
    assert torch.allclose(variance, expected.clamp_min(floor), rtol=0.01, atol=0.0)


def _variance_in_decimals(conditioned: Conditioned, p: int, Xq: Tensor) -> Tensor:
    """Posterior variances of f under particle p of the first dataset, at `1 x q x d`: `q`."""

    def exact(t: Tensor) -> np.ndarray:
        return np.asarray(np.vectorize(Decimal, otypes=[object])(t.numpy()))

    hyper, n = conditioned.particles.hyper[0, p], conditioned.num_observed
    with localcontext(prec=40):
        points = exact(torch.cat([conditioned.X, Xq], dim=1)[0]) / exact(hyper.lengthscale)
        r2 = ((points[:, None] - points) ** 2).sum(-1)
        K = exact(hyper.output_variance) * np.exp(-r2 / 2) + Decimal(PRIOR.mean.scale) ** 2
        K[range(n), range(n)] += exact(hyper.noise_sd) ** 2
        for i in range(n):
            K[i + 1 :, i + 1 :] -= np.outer(K[i + 1 :, i] / K[i, i], K[i, i + 1 :])
    return torch.as_tensor(K.diagonal()[n:].astype(float))


def test_factors_that_are_known_are_used(task: TaskBatch) -> None:
    y, bonus = task.y[:, None], torch.zeros_like(task.y[:, :1])
    particles, root, *_ = infer(PRIOR, task.X, y, bonus, ParticleConfig(count=4))
    known = condition(PRIOR, particles, task.X, task.y, root=root)
    fresh = condition(PRIOR, particles, task.X, task.y)
    torch.testing.assert_close(known.whitener, fresh.whitener, rtol=1e-9, atol=1e-9)
    scaled = condition(PRIOR, particles, task.X, task.y, root=2.0 * root)
    assert torch.allclose(scaled.whitener, 0.5 * known.whitener)


def test_more_results_are_as_if_conditioned_anew(task: TaskBatch) -> None:
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=4))
    fresh, n = condition(PRIOR, particles, task.X, task.y), task.X.shape[1] - 2
    first = condition(PRIOR, particles, task.X[:, :n], task.y[:, :n])
    for known in (first, first.with_pending(task.Xq)):
        told, off = known.with_results(task.X[:, n:], task.y[:, n:])
        torch.testing.assert_close(told.whitener, fresh.whitener, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(told.coefficients, fresh.coefficients, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(told.V, fresh.V)
        assert told.num_observed == n + 2
        # Weights by Bayes' theorem, from densities by another road.
        each = [
            torch.stack([_density(fresh, rows, p) for p in range(fresh.weights.shape[1])], dim=1)
            for rows in (slice(None), slice(n))
        ]
        foreseen = particles.log_weights + each[0] - each[1]
        weights, evidence = told.particles.log_weights, told.particles.log_evidence
        assert torch.allclose(weights, foreseen.log_softmax(-1), atol=1e-7)
        assert torch.allclose(evidence - particles.log_evidence, foreseen.logsumexp(-1), atol=1e-7)
        assert off.shape == (len(task.X),)
    # A result that is a thousand away is further off than others.
    assert (first.with_results(task.X[:, n:], task.y[:, n:] + 1e3)[1] > 100.0 * off).all()


def _density(conditioned: Conditioned, rows: slice, p: int) -> Tensor:
    """log p(y | θ) of some of the observations, by PyTorch's Gaussian: `b`."""
    X, y = conditioned.X[:, rows], conditioned.y[:, rows]
    K = observed_covariance(conditioned.prior, conditioned.particles.hyper[:, p], X)
    mean = torch.full_like(y, conditioned.prior.mean.loc)
    normal: Any = torch.distributions.MultivariateNormal(mean, K)  # untyped in torch
    density: Tensor = normal.log_prob(y)
    return density


def test_points_that_rounding_makes_certain_are_appended() -> None:
    X = torch.rand(1, 60, 2, generator=generator(2), dtype=torch.float64)
    y = (3.0 * X).sin().sum(-1)
    particles = infer_particles(PRIOR, X[:, :40], y[:, :40], ParticleConfig(count=4, steps=30))
    first = condition(PRIOR, particles, X[:, :40], y[:, :40])
    twice = torch.cat([X[:, 40:], X[:, 40:], X[:, :5]], dim=1)
    told, _ = first.with_results(twice, (3.0 * twice).sin().sum(-1))
    assert told.whitener.isfinite().all()
    assert torch.allclose(told.moments(X).mean, y[:, None], atol=1e-4)


def test_summaries_of_all_particles(task: TaskBatch) -> None:
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=1))
    conditioned = condition(PRIOR, particles, task.X, task.y).with_pending(task.Xq[:, :2])
    n, count = task.X.shape[1], particles.log_weights.shape[1]
    at_data = condition(PRIOR, particles, task.X, task.y).moments(task.X).mean
    assert conditioned.observed_mean.shape == (*at_data.shape[:2], n)
    assert torch.allclose(conditioned.observed_mean, at_data, atol=1e-7)
    assert conditioned.thinned(count) is conditioned
    assert count <= ROUGHLY
    mean, sd = conditioned.rough_moments(task.Xq)
    at, w = conditioned.moments(task.Xq), conditioned.weights[..., None]
    assert torch.allclose(mean, (w * at.mean).sum(1))
    between = (w * (at.mean - mean[:, None]).square()).sum(1)
    assert torch.allclose(sd.square(), (w * at.variance).sum(1) + between)


def mean_and_covariance(
    conditioned: Conditioned, p: int, X: Tensor, X2: Tensor
) -> tuple[Tensor, Tensor]:
    """Of f under particle p of the first dataset, by the textbook: X `m x d`, X2 `m2 x d`."""
    prior, hyper = conditioned.prior, conditioned.particles.hyper[0, p]
    n = conditioned.num_observed

    def k(A: Tensor, B: Tensor) -> Tensor:
        return covariance(prior.kernel, hyper, A, B) + prior.mean.scale**2

    data = conditioned.X[0]
    C = k(data, data) + hyper.noise_sd.square() * torch.eye(n, dtype=torch.float64)
    mean = prior.mean.loc + k(X, data) @ torch.linalg.solve(C, conditioned.y[0] - prior.mean.loc)
    return mean, k(X, X2) - k(X, data) @ torch.linalg.solve(C, k(data, X2))


def test_warps_and_roughness_are_those_of_each_particle(warped: TaskBatch) -> None:
    prior = PRIORS["real"]
    particles = infer_particles(prior, warped.X, warped.y, ParticleConfig(count=2))
    conditioned = condition(prior, particles, warped.X, warped.y)
    assert particles.hyper.warp is not None
    some = particles.hyper.warp.flatten(2).any(-1)
    assert some.any()
    assert not some.all()  # of both models of the prior
    Xq = warped.Xq.clone().requires_grad_()
    at = conditioned.moments(Xq)
    cov = conditioned.covariance(at, at)
    for p in range(particles.log_weights.shape[1]):
        X = warped.Xq[0].clone().requires_grad_()
        mean, expected = mean_and_covariance(conditioned, p, X, X)
        assert torch.allclose(at.mean[0, p], mean, atol=1e-7)
        assert torch.allclose(cov[0, p], expected, atol=1e-7)
        (slope,) = torch.autograd.grad(mean.sum(), X)
        (found,) = torch.autograd.grad(at.mean[0, p].sum(), Xq, retain_graph=True)
        assert torch.allclose(found[0], slope, rtol=1e-5, atol=1e-5)
