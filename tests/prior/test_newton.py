from typing import Any

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS
from amortes.prior.newton import NewtonConfig, ascend, full_step, maximise_paths, starting_points
from amortes.prior.paths import Paths
from amortes.random import derive_seeds, generator


def some_paths(d: int, count: int, name: str = "robust") -> Paths:
    seeds = derive_seeds(21, d, count=count)
    prior = PRIORS[name]
    return Paths.sample(prior.kernel, prior.sample(seeds, d), seeds)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_one_dimension_against_a_fine_grid(name: str) -> None:
    paths = some_paths(1, 40, name).to(torch.float64)
    grid = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None].expand(40, -1, -1)
    found = maximise_paths(paths)
    assert (found.f >= paths(grid).amax(1) - 1e-9).all()


def _descent(x: Any, path: Paths) -> tuple[float, Any]:
    """Minus the path and its gradient, for SciPy."""
    X = torch.tensor(x)[None, None].requires_grad_()
    f = path(X)
    (gradient,) = torch.autograd.grad(f.sum(), X)
    return -f.item(), -gradient[0, 0].numpy()


@pytest.mark.parametrize("d", [2, 6])
def test_many_bounded_quasi_newton_runs_find_nothing_higher(d: int) -> None:
    paths = some_paths(d, 3).to(torch.float64)
    found = maximise_paths(paths)
    starts = torch.rand(8, d, generator=generator(3), dtype=torch.float64)
    for i in range(paths.b):
        path = paths[i : i + 1]
        for x0 in starts:
            result = minimize(_descent, x0.numpy(), path, "L-BFGS-B", jac=True, bounds=[(0, 1)] * d)  # type: ignore[call-overload]
            assert -result.fun <= found.f[i] + 1e-6


@pytest.mark.parametrize("name", ["robust", "real"])
@pytest.mark.parametrize("d", [1, 4, 16])
def test_the_result_is_in_the_cube_and_attained_in_both_dtypes(d: int, name: str) -> None:
    paths = some_paths(d, 5, name)
    for p in (paths, paths.to(torch.float64)):
        found = maximise_paths(p)
        assert found.x.dtype == found.f.dtype == p.dtype
        assert ((found.x >= 0) & (found.x <= 1)).all()
        assert torch.allclose(p(found.x[:, None])[:, 0], found.f, atol=1e-5)


def test_precision_against_a_search_with_thirty_times_the_budget() -> None:
    paths = some_paths(6, 32)
    best = maximise_paths(paths, NewtonConfig.for_dim(6, budget=30)).f
    assert (maximise_paths(paths).f >= best - 1e-5).float().mean() >= 0.95


def test_the_search_is_deterministic_and_does_not_depend_on_the_batch() -> None:
    paths = some_paths(3, 9)
    state = torch.get_rng_state()
    whole, again = maximise_paths(paths), maximise_paths(paths)
    assert torch.equal(whole.x, again.x)
    assert torch.allclose(maximise_paths(paths[4:5]).f, whole.f[4:5], atol=1e-6)
    assert torch.equal(torch.get_rng_state(), state)


def test_starting_points_cover_the_faces() -> None:
    X = starting_points(3, 512)
    assert ((X >= 0) & (X <= 1)).all()
    assert 0.1 < ((X == 0) | (X == 1)).double().mean() < 0.5


def test_invalid_budgets_name_the_field() -> None:
    with pytest.raises(ConfigError, match="num_points"):
        NewtonConfig(num_points=0)
    with pytest.raises(ConfigError, match="fine_starts"):
        NewtonConfig(fine_starts=64)


def test_a_coordinate_next_to_a_bound_is_held_like_one_on_it() -> None:
    H = -torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
    top = torch.tensor([-0.5, 0.8], dtype=torch.float64)  # outside: the best point is on x_0 = 0

    def evaluate(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        g = (x - top) @ H
        return 0.5 * (g * (x - top)).sum(-1), g, H.expand(*x.shape, 2)

    starts = torch.tensor([[[0.0, 0.9], [1e-9, 0.9]]], dtype=torch.float64)
    x, _ = ascend(evaluate, starts, full_step, 1, 1.0)
    assert torch.allclose(x[0, 0], x[0, 1], atol=1e-6)
    assert x[0, 1, 0] == 0.0
