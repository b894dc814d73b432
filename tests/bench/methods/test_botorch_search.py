import inspect

import torch
from botorch.acquisition.utils import get_optimal_samples
from botorch.models import SingleTaskGP

from amortes.bench.methods.botorch_search import (
    BOTORCH_PATH_RESTARTS,
    candidates,
    optima,
    seeded,
)
from amortes.bench.methods.map_gp import fit_map
from amortes.random import generator


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
