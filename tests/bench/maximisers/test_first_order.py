import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.bench.maximisers import first_order
from amortes.bench.maximisers.first_order import (
    GRID,
    FirstOrderConfig,
    maximise_by_gradient,
    random_candidates,
)
from amortes.errors import ConfigError
from amortes.prior import newton
from amortes.prior.gp import named_prior
from amortes.prior.paths import Paths
from amortes.random import derive_seeds, generator
from amortes.training import settings

BASE = FirstOrderConfig(
    adam=True,
    init_lr=0.01,
    resample_init=False,
    num_samples=20,
    n_iterations_max=60,
    num_repeats=10,
    max_decays=5,
    tol=1e-3,
    decay_factor=0.5,
    clamp=True,
    patience=5,
)


def paths_of(d: int, count: int, *, num_features: int = 40) -> Paths:
    hyper = named_prior("paper").sample(derive_seeds(d, 0, count=count), d)
    seeds = derive_seeds(d, 1, count=count)
    return Paths.sample("se", hyper, seeds, num_features=num_features, dtype=torch.float64)


def test_warped_paths_are_climbed_too() -> None:
    prior = named_prior("real").models[1][1]
    hyper = prior.sample(derive_seeds(3, count=6), 2)
    paths = Paths.sample("mixed", hyper, derive_seeds(4, count=6), dtype=torch.float64)
    found = maximise_by_gradient(paths, BASE, generator(0))
    assert torch.allclose(paths(found.x[:, None])[:, 0], found.f, atol=1e-9)
    assert (found.f > newton.maximise_paths(paths).f - 0.05).all()


def wave(frequency: float, phase: float) -> Paths:
    """The path cos(frequency * x + phase) on the unit interval."""
    one = torch.ones(1, 1, dtype=torch.float64)
    return Paths(frequency * one[..., None], phase * one, one, torch.zeros(1, dtype=torch.float64))


def torch_ascent(path: Paths, config: FirstOrderConfig, start: Tensor) -> tuple[Tensor, float, int]:
    """One path with autograd, torch.optim and scalar bookkeeping: best x, best f, evaluations."""
    x = start.clone().requires_grad_()
    optimiser: torch.optim.Optimizer
    if config.adam:
        optimiser = torch.optim.Adam([x], lr=config.init_lr, maximize=True)
    else:
        optimiser = torch.optim.SGD([x], lr=config.init_lr, maximize=True)
    best_f, best_x, mark, stalled, decays = -math.inf, start[0], -math.inf, 0, 0
    evaluations = 0
    while True:
        values = path(x[None])[0]
        evaluations += 1
        if values.max().item() > best_f:
            best_f, best_x = values.max().item(), x.detach()[values.argmax()].clone()
        if best_f > mark + config.tol:
            mark, stalled = best_f, 0
        else:
            stalled += 1
        if stalled == config.patience:
            stalled, decays = 0, decays + 1
            optimiser.param_groups[0]["lr"] *= config.decay_factor
        if decays == config.max_decays or evaluations == config.n_iterations_max + 1:
            return best_x, best_f, evaluations
        optimiser.zero_grad()
        values.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            x.clamp_(0.0, 1.0)


def spy_on_points(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Collects the points at which gradients are taken."""
    seen: list[Tensor] = []
    original = Paths.waves

    def waves(self: Paths, X: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(X.clone())
        return original(self, X)

    monkeypatch.setattr(Paths, "waves", waves)
    return seen


def test_grid_is_the_papers() -> None:
    assert list(GRID) == [field.name for field in dataclasses.fields(FirstOrderConfig)]
    assert len(GRID) == 11
    assert math.prod(map(len, GRID.values())) == 165_888


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("adam", 1),
        ("clamp", "yes"),
        ("num_samples", 0),
        ("num_samples", 50.5),
        ("patience", True),
        ("max_decays", 0),
        ("n_iterations_max", -1),
        ("init_lr", 0.0),
        ("init_lr", math.nan),
        ("init_lr", "fast"),
        ("tol", -1e-9),
        ("decay_factor", 0.0),
        ("decay_factor", 1.1),
    ],
)
def test_invalid_values_name_their_field(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=field):
        settings.from_dict(FirstOrderConfig, {**vars(BASE), field: value})


def test_candidates_are_different_grid_points_and_a_function_of_the_seed() -> None:
    candidates = random_candidates(500, seed=3)
    for candidate in candidates:
        assert all(value in GRID[name] for name, value in vars(candidate).items())
    different = {
        c if c.resample_init else dataclasses.replace(c, num_repeats=1) for c in candidates
    }
    assert len(different) == 500
    for name, values in GRID.items():
        assert {getattr(c, name) for c in candidates} == set(values)
    assert random_candidates(500, seed=3) == candidates
    assert random_candidates(100, seed=3) == candidates[:100]
    assert random_candidates(100, seed=4) != candidates[:100]


@pytest.mark.parametrize("count", [0, 110_593])
def test_candidates_cannot_outnumber_the_grid(count: int) -> None:
    with pytest.raises(ConfigError, match="110592"):
        random_candidates(count, seed=0)


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize(
    ("tol", "patience", "decay_factor", "max_decays", "n_iterations_max"),
    [(1e-3, 5, 0.5, 5, 60), (1e-1, 1, 0.1, 3, 60), (1e-6, 2, 0.99, 15, 25), (1e-2, 3, 1.0, 2, 60)],
)
def test_agrees_with_torch_optimisers(
    adam: bool,
    tol: float,
    patience: int,
    decay_factor: float,
    max_decays: int,
    n_iterations_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = dataclasses.replace(
        BASE,
        adam=adam,
        tol=tol,
        patience=patience,
        decay_factor=decay_factor,
        max_decays=max_decays,
        n_iterations_max=n_iterations_max,
    )
    paths = paths_of(3, 6)
    starts = torch.rand(6, config.num_samples, 3, generator=generator(5), dtype=torch.float64)
    expected = [torch_ascent(paths[i : i + 1], config, starts[i]) for i in range(6)]
    seen = spy_on_points(monkeypatch)
    optimum = maximise_by_gradient(paths, config, generator(5))
    torch.testing.assert_close(
        optimum.x, torch.stack([x for x, _, _ in expected]), rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(optimum.f, [f for _, f, _ in expected], rtol=0, atol=1e-10)
    # A finished path costs nothing more.
    assert sum(len(X) for X in seen) == sum(evaluations for _, _, evaluations in expected)


def test_paths_finish_at_different_times() -> None:
    """The agreement above covers dropping paths from the batch only if this holds."""
    starts = torch.rand(6, BASE.num_samples, 3, generator=generator(5), dtype=torch.float64)
    paths = paths_of(3, 6)
    assert len({torch_ascent(paths[i : i + 1], BASE, starts[i])[2] for i in range(6)}) > 1


def test_groups_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_order, "CHUNK", 2 * BASE.num_samples * 40)
    paths = paths_of(2, 5)
    assert first_order.batch_size(paths, BASE) == 2
    shared = generator(1)
    whole = maximise_by_gradient(paths, BASE, generator(1))
    parts = [maximise_by_gradient(paths[i : i + 2], BASE, shared) for i in (0, 2, 4)]
    torch.testing.assert_close(whole.x, torch.cat([p.x for p in parts]), rtol=0, atol=0)
    torch.testing.assert_close(whole.f, torch.cat([p.f for p in parts]), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clamp", [True, False])
def test_optimum_is_in_the_cube_and_has_its_value(dtype: torch.dtype, clamp: bool) -> None:
    paths = paths_of(2, 4).to(dtype)
    config = dataclasses.replace(BASE, clamp=clamp, init_lr=0.1)
    optimum = maximise_by_gradient(paths, config, generator(0))
    assert optimum.x.dtype == optimum.f.dtype == dtype
    assert ((optimum.x >= 0) & (optimum.x <= 1)).all()
    torch.testing.assert_close(optimum.f, paths(optimum.x[:, None]).squeeze(1))


def test_a_good_configuration_finds_the_global_maximum() -> None:
    paths = paths_of(2, 8, num_features=200)
    config = dataclasses.replace(
        BASE, num_samples=50, n_iterations_max=300, tol=1e-6, max_decays=15, patience=10
    )
    found = maximise_by_gradient(paths, config, generator(0)).f
    best = newton.maximise_paths(paths, newton.NewtonConfig.for_dim(2, 4)).f
    assert (best - found).abs().max() < 1e-5


def test_resampling_keeps_the_best_points_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataclasses.replace(BASE, resample_init=True, num_samples=20, num_repeats=13)
    paths = paths_of(3, 1)
    points = torch.rand(1, 260, 3, generator=generator(2), dtype=torch.float64)
    best = paths(points).sort(dim=1, descending=True).values[:, :20]
    for block in (1, 64, 1000):
        monkeypatch.setattr(first_order, "RESAMPLED_POINTS", block)
        seen = spy_on_points(monkeypatch)
        maximise_by_gradient(paths, config, generator(2))
        starts = seen[0]
        assert starts.shape == (1, 20, 3)
        values = paths(starts).sort(dim=1, descending=True).values
        torch.testing.assert_close(values, best, rtol=0, atol=1e-12)


def test_points_that_leave_the_cube_start_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    path = wave(0.5, -0.6)  # rises on the whole interval, maximum at 1
    config = dataclasses.replace(
        BASE, adam=False, init_lr=100.0, clamp=False, tol=0.0, patience=30, n_iterations_max=30
    )
    seen = spy_on_points(monkeypatch)
    optimum = maximise_by_gradient(path, config, generator(0))
    visited = torch.stack(seen)  # every step leaves the cube, so this is pure random search
    assert len(set(visited.flatten().tolist())) == visited.numel()
    assert ((visited > 0) & (visited < 1)).all()
    assert optimum.x == visited.max()
    clamped = maximise_by_gradient(path, dataclasses.replace(config, clamp=True), generator(0))
    assert clamped.x == 1.0


def test_a_point_that_starts_anew_has_no_momentum(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataclasses.replace(
        BASE, init_lr=0.15, num_samples=1, clamp=False, tol=0.0, patience=40, n_iterations_max=40
    )
    seen = spy_on_points(monkeypatch)
    maximise_by_gradient(wave(1.5, -1.6), config, generator(0))  # rises ever more slowly
    x = torch.cat(seen).flatten()
    moves = x.diff()
    restarts = (moves[:-1] - 0.15).abs().gt(0.05).nonzero().flatten() + 1
    assert len(restarts) >= 3
    # Adam's first step is the rate, whatever the gradient; a step out of the cube is a restart.
    first_steps = moves[restarts][x[restarts] < 0.85]
    assert len(first_steps) >= 3
    torch.testing.assert_close(first_steps, torch.full_like(first_steps, 0.15), rtol=0, atol=1e-6)


def test_deterministic_and_leaves_the_global_generator_alone() -> None:
    paths = paths_of(4, 3)
    config = dataclasses.replace(BASE, clamp=False, init_lr=0.1)
    before = torch.get_rng_state()
    first, second = (maximise_by_gradient(paths, config, generator(9)) for _ in range(2))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.f, second.f)
    assert not torch.equal(maximise_by_gradient(paths, config, generator(10)).x, first.x)
    assert torch.equal(torch.get_rng_state(), before)
