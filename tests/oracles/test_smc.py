import math

import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.oracles.marginal import MarginalGP
from amortes.oracles.smc import SMCConfig, _sample, hyper_posterior
from amortes.prior.gp import GPPrior, Marginal, named_prior
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import generator
from tests.nets.kernel.hyperparameters.test_inference import MIXTURE, by_quadrature


def wave(n: int = 6, d: int = 1) -> tuple[Tensor, Tensor]:
    X = torch.rand(1, n, d, generator=generator(3), dtype=torch.float64)
    return X, (5.0 * X).sin().sum(-1)


def dense(prior: GPPrior, X: Tensor, y: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """Grid `1 x p x (d + 3)` over the named latent coordinates, with its posterior weights `p`."""
    line = torch.linspace(-5.0, 5.0, 2001 if len(axes) == 1 else 161, dtype=torch.float64)
    points = torch.cartesian_prod(*[line] * len(axes)).view(-1, len(axes))
    z = torch.zeros(1, len(points), X.shape[-1] + 3, dtype=torch.float64)
    z[0, :, axes] = points
    log_density = MarginalGP(prior, X, y).log_likelihood(z)[0] - 0.5 * points.square().sum(-1)
    return z, log_density.softmax(0)


FREE_NOISE = GPPrior(lengthscale=Marginal.fixed(0.3), mean=Marginal.fixed(0.2))
FREE_LENGTHSCALE = GPPrior(noise_sd=Marginal.fixed(0.1))
FREE_BOTH = GPPrior()


@pytest.mark.parametrize(
    ("prior", "axes"), [(FREE_NOISE, [2]), (FREE_LENGTHSCALE, [0]), (FREE_BOTH, [0, 2])]
)
def test_agrees_with_dense_integration(prior: GPPrior, axes: list[int]) -> None:
    X, y = wave()
    z, weights = dense(prior, X, y, axes)
    posterior = hyper_posterior(prior, X, y, generator(1), SMCConfig(final_particles=16384))
    for axis in axes:
        mean = weights @ z[0, :, axis]
        sd = (weights @ (z[0, :, axis] - mean).square()).sqrt()
        draws = posterior.z[0, :, axis]
        assert draws.mean().item() == pytest.approx(mean.item(), abs=0.06 * sd.item())
        assert draws.std().item() == pytest.approx(sd.item(), rel=0.06)
    Xq = torch.linspace(0.0, 1.0, 7, dtype=torch.float64)[None, :, None]
    means, variances = MarginalGP(prior, X, y).moments(z, Xq)
    noise = prior.hyperparameters(z, 1).noise_sd.square()
    expected = weights @ means[0]
    spread = weights @ (variances[0] + noise[0, :, None] + (means[0] - expected).square())
    q = posterior.predict(Xq)
    assert torch.allclose(q.mean[0], expected, atol=0.02)
    assert torch.allclose(q.variance[0], spread, rtol=0.1, atol=1e-3)


def test_predictive_is_stable_between_runs() -> None:
    X, y = wave(n=12, d=2)
    Xq = torch.rand(1, 20, 2, generator=generator(5), dtype=torch.float64)
    target = (5.0 * Xq).sin().sum(-1)
    scores = [
        hyper_posterior(GPPrior(), X, y, generator(seed), SMCConfig(particles=particles))
        .predict(Xq)
        .cross_entropy(target, torch.full_like(target, 0.01))
        .mean()
        .item()
        for seed, particles in ((0, 1024), (1, 1024), (2, 2048))
    ]
    assert max(scores) - min(scores) < 0.03


def test_datasets_of_a_batch_do_not_mix() -> None:
    """Two datasets of which one says little about the noise and the other much."""
    X = torch.rand(2, 30, 1, generator=generator(3), dtype=torch.float64)
    y = torch.stack([X[0, :, 0], torch.randn(30, generator=generator(4), dtype=torch.float64)])
    noise = hyper_posterior(GPPrior(), X, y, generator(0)).hyper.noise_sd.median(-1).values
    assert noise[0] < 0.01
    assert 0.2 < noise[1] < 1.2


def test_fixed_hyperparameters_need_no_inference() -> None:
    X, y = wave()
    posterior = hyper_posterior(named_prior("paper-1d"), X, y, generator(0))
    assert bool((posterior.hyper.lengthscale == 0.05).all())
    q = posterior.predict(X)
    assert torch.allclose(q.means, q.means[..., :1])


def test_same_generator_same_draws_and_thinning_keeps_some_of_them() -> None:
    X, y = wave()
    config = SMCConfig(particles=64, chain=8, final_particles=64)
    one, two = (hyper_posterior(GPPrior(), X, y, generator(7), config) for _ in range(2))
    assert torch.equal(one.z, two.z)
    assert torch.equal(one.thinned(16).z, one.z[:, ::4])
    assert torch.equal(one.thinned(1000).z, one.z)


def test_thinning_takes_from_all_chains() -> None:
    """States of one chain lie side by side (rejected moves repeat them), those kept lie apart."""
    X, y = wave()
    config = SMCConfig(particles=256, chain=16, final_particles=256)
    posterior = hyper_posterior(GPPrior(), X, y, generator(7), config)

    def repeats(z: Tensor) -> float:
        return (z[0, 1:, :3] == z[0, :-1, :3]).all(-1).double().mean().item()

    assert repeats(posterior.z) > 0.15
    assert repeats(posterior.thinned(16).z) < 0.1


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("particles", {"particles": 100}),
        ("final_particles", {"final_particles": 33}),
        ("ess_share", {"ess_share": 1.0}),
    ],
)
def test_wrong_configuration_is_named(field: str, values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=field):
        SMCConfig(**values)  # type: ignore[arg-type]


def test_mixtures_against_quadrature() -> None:
    """One free hyperparameter, the shift of a warp that a function has with probability 0.3."""
    task = TaskStream(MIXTURE, 5, TaskConfig(batch_size=6, num_queries=1)).batch_of(0, 1, 12)
    exact, odds = by_quadrature(task)
    posterior = hyper_posterior(MIXTURE, task.X, task.y, generator(1))
    warp = posterior.hyper.warp
    assert warp is not None
    share = warp.flatten(2).any(-1).double().mean(-1)
    torch.testing.assert_close(share, odds, atol=0.06, rtol=0.0)
    parts = [
        _sample(model, task.X, task.y, generator(2), SMCConfig())[1] + math.log(probability)
        for probability, model in MIXTURE.models
    ]
    evidence = torch.stack(parts).logsumexp(0)
    torch.testing.assert_close(evidence, exact, atol=0.15, rtol=0.0)
    # Any part of the draws is a fair one.
    some = posterior.thinned(512).hyper.warp
    assert some is not None
    few = some.flatten(2).any(-1).double().mean(-1)
    torch.testing.assert_close(few, odds, atol=0.12, rtol=0.0)
