import inspect

import pytest
import torch
from botorch.acquisition.utils import get_optimal_samples
from botorch.models import SingleTaskGP

from amortes.bench.methods.map_gp import (
    BOTORCH_PATH_RESTARTS,
    MapGP,
    candidates,
    fit_map,
    optima,
    posterior_mean,
    seeded,
)
from amortes.bench.protocol import MethodFactory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct


def fitted() -> SingleTaskGP:
    X = torch.linspace(0.0, 1.0, 7, dtype=torch.float64)[:, None]
    return fit_map(X, (7.0 * X[:, 0]).sin(), seed=0)


def test_seeded_draws_are_reproducible_and_leave_the_global_generator_alone() -> None:
    state = torch.random.get_rng_state()
    draws = []
    for seed in (3, 3, 4):
        with seeded(seed):
            draws.append(candidates(2, None))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(torch.random.get_rng_state(), state)


def test_optima_of_a_pool_are_the_best_of_its_points() -> None:
    """Little is uncertain at observed points, so the best of them is the optimum of all draws."""
    model = fitted()
    pool = model.train_inputs[0]
    with seeded(0):
        x, f = optima(model, 1, pool, 5)
    best = model.train_targets.argmax()
    assert x.shape == (5, 1)
    assert f.shape == (5, 1)
    torch.testing.assert_close(x, pool[best].expand(5, 1))
    known = model.posterior(pool[best][None])
    assert ((f - known.mean).abs() < 4 * known.variance.sqrt()).all()


def test_optima_of_the_cube_are_higher_than_those_of_a_pool() -> None:
    model = fitted()
    pool = torch.rand(200, 1, generator=generator(0), dtype=torch.float64)
    with seeded(0):
        inside, f = optima(model, 1, None, 32)
    with seeded(0):
        _, f_pool = optima(model, 1, pool, 32)
    # sin(7 x) has its maximum at pi / 14.
    assert (inside.median() - torch.pi / 14).abs() < 0.05
    assert f.mean() > f_pool.mean() - 0.02
    assert f.shape == (32, 1)


def test_candidates_of_a_pool_are_its_points() -> None:
    pool = torch.rand(9, 2, generator=generator(1), dtype=torch.float64)
    with seeded(0):
        points = candidates(2, pool)
    assert (torch.cdist(points, pool).min(1).values == 0).all()
    assert len(points) == 9


def test_botorchs_restarts_are_those_it_has_by_default() -> None:
    parameter = inspect.signature(get_optimal_samples).parameters["num_restarts"]
    assert parameter.default == BOTORCH_PATH_RESTARTS


def factory(acquisition: str) -> MethodFactory:
    return lambda problem, seed: MapGP(problem, seed, acquisition)


@pytest.mark.parametrize("acquisition", ["logei", "gibbon"])
def test_conduct(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2), near=0.1)


def test_conduct_with_noise() -> None:
    check_conduct(factory("lognei"), Quadratic(1, noise_sd=0.1))


def test_conduct_jes() -> None:
    check_conduct(factory("jes"), Quadratic(1), steps=5)


@pytest.mark.parametrize("acquisition", ["logei", "lognei", "gibbon", "jes"])
def test_pool(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2, pool=40), steps=3)


def test_the_mean_is_that_of_the_textbook() -> None:
    rng = generator(0)
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    Xq = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    y = 70.0 + 10.0 * (5.0 * X).sin().sum(-1)
    model = fit_map(X, y, seed=0)
    z = (y - y.mean()) / y.std()
    lengthscale = model.covar_module.lengthscale.detach()
    constant = model.mean_module.constant.detach()

    def kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (-0.5 * torch.cdist(A / lengthscale, B / lengthscale).square()).exp()

    K = kernel(X, X) + model.likelihood.noise.detach() * torch.eye(9, dtype=torch.float64)
    expected = constant + kernel(Xq, X) @ torch.linalg.solve(K, z - constant)
    torch.testing.assert_close(posterior_mean(model)(Xq).detach(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("acquisition", "most"), [("logei", 1024), ("gibbon", 1024), ("jes", 128)])
def test_points_are_scored_in_chunks(
    acquisition: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def score(X: torch.Tensor) -> torch.Tensor:
        sizes.append(len(X))
        return X[:, 0, 0]

    method, X = MapGP(Quadratic(2, pool=1100), 0, acquisition), torch.eye(2, dtype=torch.float64)
    monkeypatch.setattr(method, "_acquisition", lambda model, X: score)
    method.search(fit_map(X, X[:, 0], seed=0), X, seed=0)
    assert max(sizes) == most
