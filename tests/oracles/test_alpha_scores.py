import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.oracles import alpha_scores as module
from amortes.oracles import many_draws
from amortes.oracles.alpha_scores import (
    AlphaScore,
    AlphaTask,
    alpha_scores,
    alpha_tasks,
    grid,
    monte_carlo_gains,
    queries,
    summarise,
)
from amortes.oracles.base_scores import Cell
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.smc import SMCConfig
from amortes.prior.gp import GPPrior, named_prior
from amortes.random import generator
from tests.oracles.fake import SDS, KnownNetwork, gaussian_entropy

PRIOR = GPPrior(name="unshipped", max_dim=4)
NETWORK = KernelNetwork(KernelConfig(encoder=None), PRIOR).eval()
SMALL = BruteForceConfig(
    functions=1 << 11,
    hyperparameters=16,
    leaf=64,
    repeats=2,
    smc=SMCConfig(particles=64, final_particles=64),
)


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUERIES_PER_AXIS", {1: 8, 2: 3})


def compute(
    cache: Path, cells: list[Cell], count: int, *, botorch: bool = False
) -> list[tuple[Cell, AlphaTask]]:
    found = alpha_tasks(NETWORK, PRIOR, cells, count, botorch=botorch, cache=cache, config=SMALL)
    return list(found)


def test_grid_keeps_to_the_prior() -> None:
    assert grid(named_prior("paper-1d")) == [(1, 3), (1, 8), (1, 20), (1, 50)]
    assert len(grid(named_prior("robust"))) == 8 + 3


@pytest.mark.parametrize("d", [1, 2])
def test_queries_cover_the_domain_or_surround_the_best_point(d: int) -> None:
    X = torch.rand(50, d, generator=generator(d), dtype=torch.float64)
    y = -(X - 0.02).square().sum(-1)
    early, late = queries(X[:20], y[:20]), queries(X, y)
    assert early.amin().item() == 0.0
    assert early.amax().item() == 1.0
    assert early.shape == late.shape == ({1: 64, 2: 100}[d], d)
    best = X[y.argmax()]
    assert (late - best).abs().amax().item() <= module.NEAR + 1e-12
    assert late.amin().item() == 0.0  # clipped to the cube


@pytest.mark.usefixtures("few_queries")
def test_tasks_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [(1, 3), (2, 3)]
    computed = compute(tmp_path, cells, 2)
    assert [cell for cell, _ in computed] == [(1, 3), (1, 3), (2, 3), (2, 3)]
    task = computed[0][1]
    assert task.gain.shape == (8, 3)
    assert task.x_star.shape == (module.OPTIMA, 1)
    assert task.reliability.shape == task.error.shape == (3,)
    assert task.botorch is None
    monkeypatch.setattr(module, "brute_force", None)  # would fail if called
    labels: list[str] = []
    again = list(
        alpha_tasks(
            NETWORK,
            PRIOR,
            cells,
            2,
            botorch=False,
            cache=tmp_path,
            config=SMALL,
            on_task=labels.append,
        )
    )
    assert torch.allclose(again[3][1].gain, computed[3][1].gain, atol=1e-5)
    assert labels[0] == "d=1 n=3 task 0"


@pytest.mark.usefixtures("few_queries")
def test_botorch_is_added_to_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute(tmp_path, [(1, 3)], 1)
    monkeypatch.setattr(module, "brute_force", None)
    monkeypatch.setattr(module, "botorch_gains", lambda *args: torch.ones(8, 3))
    assert compute(tmp_path, [(1, 3)], 1, botorch=True)[0][1].botorch is not None
    monkeypatch.setattr(module, "botorch_gains", None)
    stored = compute(tmp_path, [(1, 3)], 1, botorch=True)[0][1].botorch
    assert stored is not None
    assert torch.equal(stored, torch.ones(8, 3, dtype=torch.float64))


def test_too_many_tasks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tasks"):
        compute(tmp_path, [(1, 3)], 17)


def test_beyond_two_dimensions_many_draws_are_the_reference(tmp_path: Path) -> None:
    ((cell, task),) = compute(tmp_path, [(3, 8)], 1)
    assert task.gain.shape == (many_draws.QUERIES, 3)
    assert len(task.x_star) == 0
    scores = alpha_scores(NETWORK, cell, task)
    assert {score.method for score in scores} == {"draws"}
    assert all(score.rank > 0.6 and 0.5 < score.size < 2.0 for score in scores)


@pytest.mark.parametrize("name", ["paper", "robust"])
def test_tasks_in_one_dimension_are_shipped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "brute_force", None)
    monkeypatch.setattr(module, "botorch_gains", None)
    cells = [(1, 3), (1, 8), (1, 20)]
    count = module.DEFAULT_TASKS
    found = alpha_tasks(NETWORK, named_prior(name), cells, count, botorch=True, cache=tmp_path)
    assert len(list(found)) == 3 * count


X_STAR = torch.tensor([0.2, 0.7, 0.9], dtype=torch.float64)[:, None]


def gains(Xq: Tensor) -> Tensor:
    """Rising, falling, and rising again after the first third."""
    return torch.cat([Xq, -Xq, (Xq - 1 / 3).square()], dim=-1)


@pytest.fixture
def task() -> AlphaTask:
    Xq = torch.linspace(0, 1, 4, dtype=torch.float64)[:, None]
    truth = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    return AlphaTask(
        X=Xq[:2],
        y=Xq[:2, 0],
        Xq=Xq,
        gain=torch.stack([truth, truth, truth], dim=-1),
        error=torch.zeros(3),
        reliability=torch.tensor([1.0, 0.81, 0.9]),
        x_star=X_STAR,
        f_star=X_STAR[:, 0],
        botorch=torch.stack([truth, -truth, truth], dim=-1),
    )


def test_monte_carlo_averages_entropies(task: AlphaTask) -> None:
    class FarFromOptimum(KnownNetwork):
        """Told x*, the prediction is the wider the further away x is."""

        def predict(self, state, Xq, hint=None):  # type: ignore[no-untyped-def]
            q = super().predict(state, Xq, hint)
            if hint is not None and hint.x is not None:
                q.sds = q.sds * (1.0 + (Xq - hint.x[:, None]).abs())
            return q

    optima = (X_STAR.repeat(20, 1), X_STAR[:, 0].repeat(20))  # more than one chunk
    actual = monte_carlo_gains(FarFromOptimum(gains), task.X, task.y, task.Xq, *optima)
    before = gaussian_entropy(SDS[False, False])
    spread = (1.0 + (task.Xq - X_STAR[:, 0]).abs()).log().mean(1)
    expected = {
        0: before - gaussian_entropy(SDS[True, False]) - spread,
        1: torch.full((4,), before - gaussian_entropy(SDS[False, True])).double(),
        2: before - gaussian_entropy(SDS[True, True]) - spread,
    }
    for column, values in expected.items():
        assert torch.allclose(actual[:, column], values, atol=1e-3)


def test_scores_by_hand(task: AlphaTask) -> None:
    scores = {(s.gain, s.method): s for s in alpha_scores(KnownNetwork(gains), (1, 2), task)}
    assert len(scores) == 9
    assert scores["pes", "learned"].rank == pytest.approx(1.0)
    assert scores["pes", "learned"].regret == pytest.approx(0.0)
    assert scores["mes", "learned"].rank == pytest.approx(-1.0)
    assert scores["mes", "learned"].regret == pytest.approx(1 - 1 / 4)
    # Values 1/9, 0, 1/9, 4/9 of JES rank 1, 0, 2, 3 or 2, 0, 1, 3 by rounding.
    assert scores["jes", "learned"].rank in (pytest.approx(0.8), pytest.approx(0.4))
    assert scores["jes", "botorch"].rank == pytest.approx(1.0)
    assert scores["mes", "botorch"].regret == pytest.approx(0.75)
    assert scores["mes", "monte_carlo"].reliability == pytest.approx(0.81)


def test_unreliable_curves_and_missing_methods_are_left_out(task: AlphaTask) -> None:
    vague = dataclasses.replace(task, reliability=torch.tensor([0.2, 0.9, 0.7]), botorch=None)
    scores = alpha_scores(KnownNetwork(gains), (1, 2), vague)
    assert {(s.gain, s.method) for s in scores} == {("mes", "learned"), ("mes", "monte_carlo")}


def test_summary_has_rows_per_cell_and_per_dimension() -> None:
    def score(n: int, method: str, rank: float) -> AlphaScore:
        return AlphaScore(
            cell=(1, n),
            gain="mes",
            method=method,
            rank=rank,
            regret=0.1,
            size=1.0,
            reliability=0.81,
        )

    rows = summarise([score(3, "draws", 0.5), score(8, "draws", 1.0), score(8, "botorch", 0.0)])
    assert [(row["d"], row["n"], row["method"], row["tasks"]) for row in rows] == [
        (1, "3", "draws", 1),
        (1, "8", "draws", 1),
        (1, "8", "botorch", 1),
        (1, "all", "draws", 2),
        (1, "all", "botorch", 1),
    ]
    assert rows[3]["rank"] == pytest.approx(0.75)
    assert rows[3]["ceiling"] == pytest.approx(0.9)
    assert rows[4]["rank"] == 0.0
    assert len({tuple(row) for row in rows}) == 1  # equal keys, as a table needs them
