import math
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError, DataError
from amortes.oracles.brute_force import (
    BruteForceConfig,
    _root,
    brute_force,
    grid_maximum,
    rank_correlation,
    sample_functions,
)
from amortes.oracles.smc import SMCConfig, hyper_posterior
from amortes.prior.gp import GPPrior, Marginal, named_prior
from amortes.prior.posterior import exact_posterior
from amortes.random import generator

SMALL = BruteForceConfig(functions=1 << 13, hyperparameters=16, leaf=128, repeats=2)
CONSTANT = GPPrior(
    max_dim=2,
    lengthscale=Marginal.fixed(1e4),
    noise_sd=Marginal.fixed(0.3),
    mean=Marginal.fixed(0.0),
)


@pytest.mark.parametrize("d", [1, 2])
def test_maximum_of_parabolas_is_exact_between_grid_points(d: int) -> None:
    g = 20
    line = torch.linspace(0, 1, g, dtype=torch.float64)
    centre = 0.1 + 0.8 * torch.rand(50, d, generator=generator(0), dtype=torch.float64)
    points = torch.cartesian_prod(*[line] * d).view(1, -1, d)
    F = 2.0 - (points - centre[:, None]).square().sum(-1)
    x_star, f_star = grid_maximum(F.view(50, *[g] * d))
    assert torch.allclose(x_star, centre, atol=1e-9)
    assert torch.allclose(f_star, torch.full_like(f_star, 2.0), atol=1e-9)


def test_maximum_on_the_boundary_stays_there() -> None:
    line = torch.linspace(0, 1, 9, dtype=torch.float64)
    F = torch.stack([line, 1 - line, -((line - 1.2) ** 2), -((line - 0.02) ** 2)])
    x_star, f_star = grid_maximum(F)
    assert x_star[:, 0].tolist() == pytest.approx([1.0, 0.0, 1.0, 0.02])
    assert f_star.tolist() == pytest.approx([1.0, 1.0, -0.04, 0.0], abs=1e-12)


def test_functions_have_the_exact_posterior() -> None:
    prior = named_prior("paper-1d")
    X = torch.tensor([[[0.2], [0.5], [0.52]]], dtype=torch.float64)
    y = torch.tensor([[1.0, -2.0, -1.0]], dtype=torch.float64)
    Xq = torch.tensor([[0.1], [0.23], [0.51], [0.9]], dtype=torch.float64)
    posterior = hyper_posterior(prior, X, y, generator(0))
    samples = sample_functions(posterior, Xq, SMALL, generator(1))
    mean, variance = exact_posterior(prior.kernel, posterior.hyper[:, 0], X, y, Xq[None])
    standard_error = (variance[0] / SMALL.functions).sqrt()
    assert ((samples.values.mean(0) - mean[0]).abs() < 5 * standard_error).all()
    assert torch.allclose(samples.values.var(0), variance[0], rtol=0.08)
    assert bool((samples.noise_sd == 0.1).all())
    assert bool((samples.f_star[:, None] > samples.values - 1e-2).all())


def test_root_of_matrices_that_rounding_made_indefinite() -> None:
    V = torch.randn(2, 6, 3, generator=generator(0), dtype=torch.float64)
    C = V @ V.mT
    C[1].diagonal().sub_(1e-6)
    root = _root(C.clone())
    assert torch.allclose(root @ root.mT, C, atol=1e-5)


@pytest.mark.parametrize("d", [1, 2])
def test_a_constant_function_has_a_closed_form(d: int) -> None:
    """f is one number c, so f* = c at every x: I(y; f*) = log(1 + v / s^2) / 2, I(y; x*) = 0."""
    X = torch.full((1, d), 0.5, dtype=torch.float64)
    y = torch.tensor([0.4], dtype=torch.float64)
    Xq = torch.rand(5, d, generator=generator(0), dtype=torch.float64)
    result = brute_force(CONSTANT, X, y, Xq, seed=1, config=SMALL)
    v = 1.0 - 1.0 / 1.09
    exact = torch.full((5,), 0.5 * math.log1p(v / 0.09), dtype=torch.float64)
    assert torch.allclose(result.gain[:, 1], exact, atol=0.03)
    assert torch.allclose(result.gain[:, 2], exact, atol=0.03)
    assert result.gain[:, 0].abs().max().item() < 0.01
    assert (result.error < 0.05).all()


def test_gain_vanishes_where_all_is_known_and_repeats_agree() -> None:
    prior = GPPrior(noise_sd=Marginal.fixed(0.05), mean=Marginal.fixed(0.0))
    X = torch.tensor([[0.0], [0.1], [0.2]], dtype=torch.float64)
    y = torch.tensor([0.0, 0.1, 0.2], dtype=torch.float64)
    Xq = torch.linspace(0, 1, 12, dtype=torch.float64)[:, None]
    calls: list[None] = []
    result = brute_force(prior, X, y, Xq, 0, SMALL, on_repeat=lambda: calls.append(None))
    assert len(calls) == SMALL.repeats
    assert (result.gain[-4:].amin(0) > 3 * result.gain[1]).all()
    assert (result.reliability > 0.8).all()
    assert (result.gain[:, 2] > result.gain[:, :2].amax(1) - 0.05).all()
    again = brute_force(prior, X, y, Xq, 0, SMALL)
    assert torch.equal(again.gain, result.gain)
    assert result.x_star.shape == (2 * SMALL.functions, 1)


def test_rank_correlation() -> None:
    a = torch.tensor([0.1, 5.0, 2.0, 3.0])
    assert rank_correlation(a, a.exp()) == pytest.approx(1.0)
    assert rank_correlation(a, -a) == pytest.approx(-1.0)
    # Ranks 0 3 1 2 and 0 1 2 3: 1 - 6 * (0 + 4 + 1 + 1) / (4 * 15)
    assert rank_correlation(a, torch.arange(4.0)) == pytest.approx(0.4)
    assert rank_correlation(a, torch.ones(4)) == 0.0
    assert rank_correlation(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, 2.0, 3.0])) < 0.9


def test_three_dimensions_are_refused() -> None:
    X = torch.rand(4, 3, dtype=torch.float64, generator=generator(0))
    with pytest.raises(DataError, match="d=3"):
        brute_force(GPPrior(), X, X[:, 0], X, seed=0)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("functions", {"functions": 1000}),
        ("leaf", {"leaf": 16}),
        ("hyperparameters", {"hyperparameters": 8192}),
        ("hyperparameters", {"smc": SMCConfig(final_particles=512)}),
        ("repeats", {"repeats": 3}),
    ],
)
def test_wrong_configuration_is_named(field: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=field):
        BruteForceConfig(**values)
