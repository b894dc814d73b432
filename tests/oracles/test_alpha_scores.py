import dataclasses

import pytest
import torch
from torch import Tensor

from amortes.oracles.alpha_scores import (
    AlphaScore,
    alpha_gains,
    alpha_scores,
    monte_carlo_gains,
    summarise,
)
from amortes.oracles.alpha_tasks import AlphaTask
from tests.oracles.fake import SDS, KnownNetwork, gaussian_entropy

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


def test_alpha_gains_are_the_means(task: AlphaTask) -> None:
    assert torch.allclose(alpha_gains(KnownNetwork(gains), task), gains(task.Xq))


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
    assert scores["pes", "alpha"].rank == pytest.approx(1.0)
    assert scores["pes", "alpha"].regret == pytest.approx(0.0)
    assert scores["mes", "alpha"].rank == pytest.approx(-1.0)
    assert scores["mes", "alpha"].regret == pytest.approx(1 - 1 / 4)
    # Values 1/9, 0, 1/9, 4/9 of JES rank 1, 0, 2, 3 or 2, 0, 1, 3 by rounding.
    assert scores["jes", "alpha"].rank in (pytest.approx(0.8), pytest.approx(0.4))
    assert scores["jes", "botorch"].rank == pytest.approx(1.0)
    assert scores["mes", "botorch"].regret == pytest.approx(0.75)
    assert scores["mes", "monte_carlo"].reliability == pytest.approx(0.81)


def test_unreliable_curves_and_missing_methods_are_left_out(task: AlphaTask) -> None:
    vague = dataclasses.replace(task, reliability=torch.tensor([0.2, 0.9, 0.7]), botorch=None)
    scores = alpha_scores(KnownNetwork(gains), (1, 2), vague)
    assert {(s.gain, s.method) for s in scores} == {("mes", "alpha"), ("mes", "monte_carlo")}


def test_summary_has_a_row_per_cell_and_one_per_dimension() -> None:
    def score(n: int, method: str, rank: float) -> AlphaScore:
        return AlphaScore(
            cell=(1, n), gain="mes", method=method, rank=rank, regret=0.1, reliability=0.81
        )

    rows = summarise([score(3, "alpha", 0.5), score(8, "alpha", 1.0), score(8, "botorch", 0.0)])
    assert [(row["d"], row["n"], row["tasks"]) for row in rows] == [
        (1, "3", 1),
        (1, "8", 1),
        (1, "all", 2),
    ]
    assert rows[2]["alpha"] == pytest.approx(0.75)
    assert rows[2]["ceiling"] == pytest.approx(0.9)
    assert [row["botorch"] for row in rows] == [None, 0.0, 0.0]
    assert len({tuple(row) for row in rows}) == 1  # equal keys, as a table needs them
