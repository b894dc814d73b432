from pathlib import Path

import pytest
import torch

from amortes.errors import ConfigError
from amortes.oracles import alpha_tasks
from amortes.oracles.alpha_tasks import AlphaTask, grid, queries
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.reference import Cell
from amortes.oracles.smc import SMCConfig
from amortes.prior.gp import GPPrior, named_prior
from amortes.random import generator

PRIOR = GPPrior(name="unshipped", max_dim=2)
SMALL = BruteForceConfig(
    functions=1 << 11,
    hyperparameters=16,
    leaf=64,
    repeats=2,
    smc=SMCConfig(particles=64, final_particles=64),
)


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_tasks, "QUERIES_PER_AXIS", {1: 8, 2: 3})


def compute(
    cache: Path, cells: list[Cell], count: int, *, botorch: bool = False
) -> list[tuple[Cell, AlphaTask]]:
    found = alpha_tasks.alpha_tasks(PRIOR, cells, count, botorch=botorch, cache=cache, config=SMALL)
    return list(found)


def test_grid_keeps_to_the_prior() -> None:
    assert grid(named_prior("paper-1d")) == [(1, 3), (1, 8), (1, 20), (1, 50)]
    assert len(grid(named_prior("robust"))) == 8


@pytest.mark.parametrize("d", [1, 2])
def test_queries_cover_the_domain_or_surround_the_best_point(d: int) -> None:
    X = torch.rand(50, d, generator=generator(d), dtype=torch.float64)
    y = -(X - 0.02).square().sum(-1)
    early, late = queries(X[:20], y[:20]), queries(X, y)
    assert early.amin().item() == 0.0
    assert early.amax().item() == 1.0
    assert early.shape == late.shape == ({1: 64, 2: 100}[d], d)
    best = X[y.argmax()]
    assert (late - best).abs().amax().item() <= alpha_tasks.NEAR + 1e-12
    assert late.amin().item() == 0.0  # clipped to the cube


@pytest.mark.usefixtures("few_queries")
def test_tasks_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [(1, 3), (2, 3)]
    computed = compute(tmp_path, cells, 2)
    assert [cell for cell, _ in computed] == [(1, 3), (1, 3), (2, 3), (2, 3)]
    task = computed[0][1]
    assert task.gain.shape == (8, 3)
    assert task.x_star.shape == (alpha_tasks.OPTIMA, 1)
    assert task.reliability.shape == task.error.shape == (3,)
    assert task.botorch is None
    monkeypatch.setattr(alpha_tasks, "brute_force", None)  # would fail if called
    labels: list[str] = []
    again = list(
        alpha_tasks.alpha_tasks(
            PRIOR, cells, 2, botorch=False, cache=tmp_path, config=SMALL, on_task=labels.append
        )
    )
    assert torch.allclose(again[3][1].gain, computed[3][1].gain, atol=1e-5)
    assert labels[0] == "d=1 n=3 task 0"


@pytest.mark.usefixtures("few_queries")
def test_botorch_is_added_to_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute(tmp_path, [(1, 3)], 1)
    monkeypatch.setattr(alpha_tasks, "brute_force", None)
    monkeypatch.setattr(alpha_tasks, "botorch_gains", lambda *args: torch.ones(8, 3))
    assert compute(tmp_path, [(1, 3)], 1, botorch=True)[0][1].botorch is not None
    monkeypatch.setattr(alpha_tasks, "botorch_gains", None)
    stored = compute(tmp_path, [(1, 3)], 1, botorch=True)[0][1].botorch
    assert stored is not None
    assert torch.equal(stored, torch.ones(8, 3, dtype=torch.float64))


def test_too_many_tasks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tasks"):
        compute(tmp_path, [(1, 3)], 17)


def test_too_many_dimensions(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"brute force is for .* d=3"):
        compute(tmp_path, [(1, 3), (3, 8)], 1)


@pytest.mark.parametrize("name", ["paper", "robust"])
def test_tasks_in_one_dimension_are_shipped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alpha_tasks, "brute_force", None)
    monkeypatch.setattr(alpha_tasks, "botorch_gains", None)
    cells = [(1, 3), (1, 8), (1, 20)]
    count = alpha_tasks.DEFAULT_TASKS
    found = list(
        alpha_tasks.alpha_tasks(named_prior(name), cells, count, botorch=True, cache=tmp_path)
    )
    assert len(found) == 3 * count
