import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, tensor

from amortes.nets.kernel.hyperparameters import inference
from amortes.nets.kernel.hyperparameters.encoder import standardised
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior, observed_covariance
from amortes.nets.kernel.hyperparameters.inference import Inferred, infer, infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig, find_modes, normal_points
from amortes.nets.kernel.numpy_kernels import Array
from amortes.prior.gp import PRIORS, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator
from tests.nets.kernel.hyperparameters.test_particles import branin

FREE = dataclasses.replace(
    PRIORS["robust"], name="free", output_variance=Marginal.lognormal(0.0, 0.5)
)


def test_moments_agree_with_numeric_integration() -> None:
    # Two free scalars: one lengthscale and the noise; integrate both on a grid.
    prior = PRIORS["robust"]
    for n in (3, 15):
        task = TaskStream(prior, 5, TaskConfig(batch_size=4, num_queries=2)).batch_of(0, 1, n)
        posterior = HyperPosterior(prior, task.X.numpy(), task.y.numpy())
        side = torch.linspace(-4.5, 4.5, 61, dtype=torch.float64)
        grid = torch.cartesian_prod(side, torch.zeros(1, dtype=torch.float64), side)
        weights = tensor(posterior.log_density(grid.expand(4, -1, -1).numpy())).softmax(-1)
        for column, name in ((0, "lengthscale"), (2, "noise_sd")):
            exact = (weights * grid[:, column]).sum(-1)
            spread = ((weights * grid[:, column].square()).sum(-1) - exact.square()).sqrt()
            particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=256))
            value = getattr(particles.hyper, name).reshape(4, -1)
            marginal: Marginal = getattr(prior, name)
            z = (value.log() - marginal.loc) / marginal.scale
            ours = (particles.log_weights.exp() * z).sum(-1)
            assert ((ours - exact).abs() < 0.25 * spread + 0.05).all()


@pytest.mark.parametrize("seed", [109, 113, 296])
def test_smooth_with_noise_and_rough_without_are_both_found(seed: int) -> None:
    # Eight numbers without any order. From z = 0 alone, noise z is 1.8 to 2.0 with an sd below 0.3.
    prior, rng = PRIORS["robust"], torch.Generator().manual_seed(seed)
    X = torch.rand(1, 8, 1, generator=rng, dtype=torch.float64)
    y = torch.randn(1, 8, generator=rng, dtype=torch.float64)
    y = (y - y.mean()) / y.std()
    side = torch.linspace(-4.5, 4.5, 91, dtype=torch.float64)
    grid = torch.cartesian_prod(side, torch.zeros(1, dtype=torch.float64), side)
    posterior = HyperPosterior(prior, X.numpy(), y.numpy())
    exact = tensor(posterior.log_density(grid[None].numpy())).softmax(-1)
    particles = infer_particles(prior, X, y, ParticleConfig())
    noise = (particles.hyper.noise_sd.log() - prior.noise_sd.loc) / prior.noise_sd.scale
    mean, sd = _moments(noise, particles.log_weights.exp())
    exact_mean, exact_sd = _moments(grid[:, -1], exact)
    assert mean == pytest.approx(exact_mean, abs=0.2 * exact_sd)
    assert sd == pytest.approx(exact_sd, rel=0.15)


def _moments(values: Tensor, weights: Tensor) -> tuple[float, float]:
    mean = (weights * values).sum()
    return float(mean), float((weights * (values - mean).square()).sum().sqrt())


def test_weights_are_normalised_and_batches_do_not_matter(task: TaskBatch) -> None:
    config = ParticleConfig()
    whole = infer_particles(PRIORS["robust"], task.X, task.y, config)
    assert torch.allclose(whole.log_weights.logsumexp(-1), torch.zeros(3, dtype=torch.float64))
    alone = infer_particles(PRIORS["robust"], task.X[1:2], task.y[1:2], config)
    assert torch.allclose(alone.log_weights, whole.log_weights[1:2], atol=1e-6)


@pytest.mark.parametrize("loc", [-12.0, -14.0])
def test_priors_of_very_little_noise(loc: float) -> None:
    # Fisher matrices of so ill-conditioned covariances are indefinite by rounding.
    quiet = dataclasses.replace(PRIORS["paper"], noise_sd=Marginal.lognormal(loc, 2.0))
    for n, d in ((60, 1), (100, 2)):
        X = torch.rand(1, n, d, generator=generator(n, d), dtype=torch.float64)
        y = (2.0 * X).sin().sum(-1)
        particles = infer_particles(quiet, X, (y - y.mean()) / y.std(), ParticleConfig())
        assert bool(particles.log_weights.isfinite().any())
        assert not bool(particles.log_weights.isnan().any())


def test_the_least_effort_works(task: TaskBatch) -> None:
    many = TaskStream(FREE, 5, TaskConfig(batch_size=3, num_queries=1)).batch_of(0, 2, 45)
    config = ParticleConfig(count=1, candidates=1, steps=0)
    assert infer_particles(FREE, many.X, many.y, config).log_weights.tolist() == [[0.0]] * 3
    few = infer_particles(FREE, task.X, task.y, config)
    assert few.log_weights.shape == (3, 4)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_small_datasets_have_more_particles(name: str) -> None:
    prior, config = PRIORS[name], ParticleConfig(count=4)
    for n, count in ((1, 16), (10, 16), (13, 12), (20, 8), (40, 4), (60, 4)):
        assert config.kept(n) == count
        task = TaskStream(prior, 5, TaskConfig(batch_size=2, num_queries=1)).batch_of(0, 2, n)
        particles = infer_particles(prior, task.X, task.y, config)
        assert particles.log_weights.shape == (2, count)
        total = particles.log_weights.logsumexp(-1)
        assert torch.allclose(total, torch.zeros(2, dtype=torch.float64), atol=1e-12)
    # More than there are candidates.
    greedy = ParticleConfig(count=1024, candidates=1)
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 10)
    weights = infer_particles(prior, task.X, task.y, greedy).log_weights
    assert float(weights.logsumexp(-1)) == pytest.approx(0.0, abs=1e-9)


def test_evidence_agrees_with_numeric_integration() -> None:
    prior = PRIORS["robust"]
    side = torch.linspace(-6.0, 6.0, 121, dtype=torch.float64)
    grid = torch.cartesian_prod(side, torch.zeros(1, dtype=torch.float64), side)
    cell = math.log((float(side[1] - side[0])) ** 2 / (2 * math.pi))  # the prior is N(0, I)
    for n in (3, 15):
        task = TaskStream(prior, 5, TaskConfig(batch_size=4, num_queries=2)).batch_of(0, 1, n)
        posterior = HyperPosterior(prior, task.X.numpy(), task.y.numpy())
        density = tensor(posterior.log_density(grid.expand(4, -1, -1).numpy()))
        exact = density.logsumexp(-1) + cell
        ours = infer_particles(prior, task.X, task.y, ParticleConfig(count=256)).log_evidence
        torch.testing.assert_close(ours, exact, atol=0.05, rtol=0.0)
        few = infer_particles(prior, task.X, task.y, ParticleConfig()).log_evidence
        torch.testing.assert_close(few, exact, atol=0.5, rtol=0.0)


def test_evidence_under_known_hyperparameters_is_the_density() -> None:
    prior = PRIORS["paper-1d"]
    task = TaskStream(prior, 1, TaskConfig(batch_size=3, num_queries=2)).batch_of(0, 1, 7)
    r2 = ((task.X - task.X.mT) / 0.05).square()
    K = 10.0 * (-0.5 * r2).exp() + 0.1**2 * torch.eye(7, dtype=torch.float64)
    zero = torch.zeros(7, dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(zero, K)
    exact = normal.log_prob(task.y)  # type: ignore[no-untyped-call]
    ours = infer_particles(prior, task.X, task.y, ParticleConfig()).log_evidence
    torch.testing.assert_close(ours, exact, atol=0.05, rtol=0.0)  # the weights differ from 1/k


MIXTURE = dataclasses.replace(
    PRIORS["paper-1d"],
    name="mixture",
    lengthscale=Marginal.fixed(0.3),
    output_variance=Marginal.fixed(1.0),
    warp_shift=Marginal.normal(0.0, 1.0),
    warp_probability=0.3,
)


"""One free hyperparameter, the shift of the warp, if there is one."""


def by_quadrature(task: TaskBatch) -> tuple[Tensor, Tensor]:
    """Log evidence under `MIXTURE`, and the probability of a warp: `b` each."""
    (share, plain), (other, warped) = MIXTURE.models
    side = torch.linspace(-6.0, 6.0, 801, dtype=torch.float64)
    X, y = task.X.numpy(), task.y.numpy()
    posterior = HyperPosterior(warped, X, y)
    grid = torch.zeros(801, posterior.p, dtype=torch.float64)
    grid[:, -1] = side
    density = tensor(posterior.log_density(grid.expand(len(X), -1, -1).numpy()))
    cell = math.log(float(side[1] - side[0]) / math.sqrt(2 * math.pi))
    evidence = density.logsumexp(-1) + cell
    without = tensor(HyperPosterior(plain, X, y).log_density(np.zeros((len(X), 1, 3)))[:, 0])
    both = torch.stack([without + math.log(share), evidence + math.log(other)], dim=-1)
    return both.logsumexp(-1), both.softmax(-1)[:, 1]


def test_mixtures_are_weighed_by_their_evidence() -> None:
    task = TaskStream(MIXTURE, 5, TaskConfig(batch_size=6, num_queries=1)).batch_of(0, 1, 12)
    exact, odds = by_quadrature(task)
    particles = infer_particles(MIXTURE, task.X, task.y, ParticleConfig(count=256))
    torch.testing.assert_close(particles.log_evidence, exact, atol=0.05, rtol=0.0)
    assert particles.hyper.warp is not None
    warped = particles.hyper.warp.flatten(2).any(-1)
    share = (particles.log_weights.exp() * warped).sum(-1)
    torch.testing.assert_close(share, odds, atol=0.03, rtol=0.0)
    assert 0.05 < odds.min() < 0.5 < odds.max()


@pytest.mark.parametrize("off", [0.0, 2.0])
def test_guesses_good_or_bad_leave_the_posterior_what_it_is(off: float) -> None:
    prior = PRIORS["robust"]
    task = TaskStream(prior, 5, TaskConfig(batch_size=4, num_queries=2)).batch_of(0, 1, 15)
    without = infer_particles(prior, task.X, task.y, ParticleConfig(count=256))
    z = prior.noise_sd.latent(without.hyper.noise_sd, 1)
    exact = (without.log_weights.exp() * z).sum(-1)
    # In the order of the encoder: lengthscale, shape, shift, output variance, noise, roughness.
    mean = torch.full((4, 6), off, dtype=torch.float64)
    guess = [(mean, torch.full_like(mean, -0.7))]
    alternatives, bonus = task.y[:, None], torch.zeros(4, 1, dtype=torch.float64)
    told, root, *_ = infer(prior, task.X, alternatives, bonus, ParticleConfig(count=256), guess)
    z = prior.noise_sd.latent(told.hyper.noise_sd, 1)
    ours = (told.log_weights.exp() * z).sum(-1)
    assert (ours - exact).abs().max() < 0.15
    torch.testing.assert_close(told.log_evidence, without.log_evidence, atol=0.4, rtol=0.0)
    covariance = observed_covariance(prior, told.hyper, task.X[:, None])
    assert torch.allclose(root @ root.mT, covariance, atol=1e-10)


def test_climbs_begin_at_the_best_points_screened(
    task: TaskBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    original = find_modes

    def counted(posterior: HyperPosterior, start: Array, limit: int, rivals: int) -> Any:
        begun.append((limit, posterior.log_density(start[:, None])[:, 0], start))
        return original(posterior, start, limit, rivals)

    monkeypatch.setattr("amortes.nets.kernel.hyperparameters.particles.find_modes", counted)
    prior, config = PRIORS["real"], ParticleConfig()
    # In the order of the encoder; as good a guess as can be: the true hyperparameters.
    y, z = standardised(prior, task.y, task.hyper)
    guess = [(z, torch.full_like(z, -4.0)) for _ in prior.models]
    infer(prior, task.X, y[:, None], torch.zeros_like(y[:, :1]), config, guess)
    ((limit, density, start),) = begun
    assert limit == config.steps
    assert start.shape == (3 * 2 * 3, 9)  # datasets, models, starts
    for i, (_, model) in enumerate(prior.models):
        posterior = HyperPosterior(prior, task.X.numpy(), y.numpy(), np.full(3, model.warped))
        others = np.tile(normal_points(posterior.p, 64).numpy(), (3, 1, 1))
        best = posterior.log_density(others * posterior.active[:, None]).max(-1)
        assert (density.reshape(3, 2, 3)[:, i, 0] >= best - 1e-9).all()


def test_the_likeliest_of_alternatives_is_inferred_from() -> None:
    prior = PRIORS["robust"]
    task = TaskStream(prior, 6, TaskConfig(batch_size=4, num_queries=2)).batch_of(0, 2, 20)
    shuffled = task.y[:, torch.randperm(20, generator=torch.Generator().manual_seed(0))]
    Y = torch.stack([shuffled, task.y], dim=1)
    nothing = torch.zeros(4, 2, dtype=torch.float64)
    found = infer(prior, task.X, Y, nothing, ParticleConfig())
    assert (found.choice == 1).all()
    alone = infer_particles(prior, task.X, task.y, ParticleConfig())
    torch.testing.assert_close(found.particles.log_evidence, alone.log_evidence)
    torch.testing.assert_close(found.particles.hyper.lengthscale, alone.hyper.lengthscale)
    bonus = torch.tensor([[1e6, 0.0]] * 4, dtype=torch.float64)
    assert (infer(prior, task.X, Y, bonus, ParticleConfig()).choice == 0).all()


def test_climbs_go_on_for_an_alternative_that_candidates_find_likelier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prior = PRIORS["robust"]
    task = TaskStream(prior, 6, TaskConfig(batch_size=1, num_queries=2)).batch_of(0, 2, 20)
    Y = torch.stack([task.y, task.y[:, torch.arange(19, -1, -1)], 1.1 * task.y], dim=1)
    first = infer(prior, task.X, Y[:, :1], Y.new_zeros(1, 1), ParticleConfig())
    tried, real = [], inference._weigh
    # Each finds itself worse than the one before, and the next alternative better than all.
    told = iter(([0.0, 5.0, -9.0], [-9.0, -5.0, 5.0], [-9.0, -9.0, -8.0]))

    def weigh(
        climbs: Any, screen: Any, Y: Array, choice: Any, *rest: Any
    ) -> tuple[Inferred, Array]:
        tried.append((int(choice[0]), climbs.mode))
        return real(climbs, screen, Y, choice, *rest)[0], np.array([next(told)])

    monkeypatch.setattr(inference, "_weigh", weigh)
    bonus = Y.new_tensor([[1e-9, 0.0, 0.0]])
    kept = infer(prior, task.X, Y, bonus, ParticleConfig(steps=0))
    assert [choice for choice, _ in tried] == [0, 1, 2]
    assert kept.choice.tolist() == [0]
    assert all((mode == tried[0][1]).all() for _, mode in tried)  # from where they had ended
    monkeypatch.setattr(inference, "_weigh", real)
    again = infer(prior, task.X, Y[:, [1, 0]], Y.new_zeros(1, 2), ParticleConfig())
    assert again.choice.tolist() == [1]
    torch.testing.assert_close(again.particles.log_evidence, first.particles.log_evidence)


@pytest.mark.parametrize("n", [30, 60])
def test_particles_without_noise_are_not_one(n: int) -> None:
    X, y = branin(n)
    weights = infer_particles(PRIORS["robust"], X, y, ParticleConfig()).log_weights.exp()
    assert float(1.0 / weights.square().sum()) > 3.0


def test_modes_that_are_known_take_a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = PRIORS["real"]
    task = TaskStream(prior, 3, TaskConfig(batch_size=2, num_queries=2)).batch_of(0, 2, 30)
    y, bonus = task.y[:, None], torch.zeros(2, 1, dtype=torch.float64)
    known = infer(prior, task.X[:, :26], y[..., :26], bonus, ParticleConfig()).modes
    assert known.shape == (2, 2, 3, prior.latent_size(2) - 1)
    begun, real = [], find_modes

    def counted(posterior: HyperPosterior, start: Array, steps: int, rivals: int = 1) -> Any:
        begun.append((start, steps))
        return real(posterior, start, steps, rivals)

    monkeypatch.setattr("amortes.nets.kernel.hyperparameters.particles.find_modes", counted)
    found = infer(prior, task.X, y, bonus, ParticleConfig(count=64), modes=known)
    ((start, steps),) = begun
    assert steps == inference.FOLLOWING_STEPS
    assert (start.reshape(2, 2, -1, start.shape[-1])[:, :, 0] == known[:, :, 0]).all()
    fresh = infer(prior, task.X, y, bonus, ParticleConfig(count=64))
    torch.testing.assert_close(
        found.particles.log_evidence, fresh.particles.log_evidence, atol=0.7, rtol=0.0
    )
