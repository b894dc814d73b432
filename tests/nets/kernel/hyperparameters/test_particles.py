import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior
from amortes.nets.kernel.hyperparameters.inference import infer
from amortes.nets.kernel.hyperparameters.particles import (
    APART,
    FURTHEST,
    NEGLIGIBLE,
    STEEP,
    ParticleConfig,
    find_modes,
    normal_points,
    thin,
)
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch
from amortes.random import generator


def test_climbs_end_at_the_mode(task: TaskBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = HyperPosterior(PRIORS["robust"], task.X.numpy(), task.y.numpy())
    start = np.zeros((3, 4))
    z, *_ = find_modes(posterior, start, steps=30)
    assert np.linalg.norm(posterior.derivatives(z)[1], axis=-1).max() < STEEP
    monkeypatch.setattr("amortes.nets.kernel.hyperparameters.particles.STEEP", 1e-4)
    z, *_ = find_modes(posterior, start, steps=100)
    assert np.linalg.norm(posterior.derivatives(z)[1], axis=-1).max() < 1e-4


def branin(n: int) -> tuple[Tensor, Tensor]:
    """The function without noise, standardised: X `1 x n x 2`, y `1 x n`."""
    X = torch.rand(1, n, 2, generator=generator(n), dtype=torch.float64)
    u, v = 15.0 * X[..., 0] - 5.0, 15.0 * X[..., 1]
    valley = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6.0
    y = valley.square() + 10 * (1 - 1 / (8 * math.pi)) * u.cos()
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("n", [30, 60])
def test_the_mode_is_found_without_noise(n: int) -> None:
    # From z = 0, a noise sd of 0.05, ten steps get to 0.0003 at best.
    X, y = branin(n)
    posterior = HyperPosterior(PRIORS["robust"], X.numpy(), y.numpy())
    z, *_ = find_modes(posterior, np.zeros((1, 4)), steps=30)
    gradient = np.where(np.abs(z) < FURTHEST, posterior.derivatives(z)[1], 0.0)  # held there
    assert np.linalg.norm(gradient) < 1.0


def test_climbs_without_hope_end_early_and_the_best_does_not_change() -> None:
    X, y = branin(40)
    posterior = HyperPosterior(PRIORS["robust"], X.numpy(), y.numpy())
    starts = np.array([[0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 0.0, 4.0]])
    both = posterior.rows(np.array([0, 0]))
    alone = find_modes(both, starts, steps=30)
    rivals = find_modes(both, starts, steps=30, rivals=2)
    assert float(rivals.value.max()) == pytest.approx(float(alone.value.max()))
    worse = int(rivals.value.argmin())
    assert float(rivals.value[worse]) <= float(alone.value[worse]) + 1e-9
    near = alone.value > alone.value.max() - NEGLIGIBLE
    np.testing.assert_allclose(rivals.value[near], alone.value[near])


def test_modes_are_distinct_and_the_best_comes_first() -> None:
    prior = PRIORS["real"]
    X, y = branin(40)
    found = infer(prior, X, y[:, None], torch.zeros(1, 1, dtype=torch.float64), ParticleConfig())
    density = [
        HyperPosterior(prior, X.numpy(), y.numpy(), np.full(1, model.warped)).log_density(modes)
        for (_, model), modes in zip(prior.models, found.modes.swapaxes(0, 1), strict=True)
    ]
    for values, modes in zip(density, found.modes[0], strict=True):
        assert values.argmax() == 0
        for i, j in [(0, 1), (0, 2), (1, 2)]:
            same = (modes[i] == modes[j]).all()
            assert same or np.abs(modes[i] - modes[j]).max() > APART


def test_thinning_keeps_large_weights_and_makes_the_others_equal() -> None:
    weights = torch.tensor([[0.02, 0.5, 0.06, 0.03, 0.3, 0.04, 0.05], [1 / 7] * 7]).double()
    kept, log_weights = thin(weights.log(), 4)
    # The two large ones stay; the other five, 0.2 in all, get two places of 0.1.
    assert kept[0].tolist() == sorted(set(kept[0].tolist()))
    new = dict(zip(kept[0].tolist(), log_weights[0].exp().tolist(), strict=True))
    assert new.pop(1) == pytest.approx(0.5)
    assert new.pop(4) == pytest.approx(0.3)
    assert list(new.values()) == pytest.approx([0.1, 0.1])
    assert log_weights[1].exp().tolist() == pytest.approx([0.25] * 4)


def test_thinning_survives_weights_that_are_nothing() -> None:
    log_weights = torch.tensor([[0.0, -1e4, -800.0, -2e3, -50.0, -1e4]]).double()
    for row in (log_weights, log_weights.flip(-1)):
        kept, new = thin(row, 4)
        assert float(new.exp().sum()) == pytest.approx(1.0)
        assert len(set(kept[0].tolist())) == 4
        assert float(new[row.gather(1, kept) == 0.0].exp()) == pytest.approx(1.0)


def test_thinning_has_no_bias() -> None:
    weights = torch.rand(1, 40, generator=generator(3), dtype=torch.float64)
    weights = weights.square() / weights.square().sum()
    orders = torch.rand(4000, 40, generator=generator(4)).argsort(-1)
    kept, log_weights = thin(weights[0][orders].log(), 10)
    total = torch.zeros(40, dtype=torch.float64)
    total.index_add_(0, orders.gather(1, kept).flatten(), log_weights.exp().flatten() / 4000)
    assert torch.allclose(total, weights[0], atol=0.005)


def test_normal_points_are_normal() -> None:
    points = normal_points(3, 4096)
    assert points.mean(0).abs().max() < 0.01
    assert (points.var(0) - 1).abs().max() < 0.02
    assert points.data_ptr() == normal_points(3, 4096).data_ptr()  # kept
    assert torch.equal(normal_points(3, 100), points[:100])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("count", [0, -1]),
        ("candidates", [0]),
        ("inflation", [0.0, -1.0, math.inf, math.nan]),
        ("from_guess", [-1]),
        ("steps", [-1]),
    ],
)
def test_invalid_values_name_the_field(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=f"^{field}: must be .* not {value}"):
            ParticleConfig(**{field: value})
