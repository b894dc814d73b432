import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.nets.kernel.inference import infer
from amortes.nets.kernel.modes import APART, FURTHEST, NEGLIGIBLE, STEEP, find_modes
from amortes.nets.kernel.particles import ParticleConfig
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch
from amortes.random import generator


def test_climbs_end_at_the_mode(task: TaskBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = HyperPosterior(PRIORS["robust"], task.X.numpy(), task.y.numpy())
    start = np.zeros((3, 4))
    z, *_ = find_modes(posterior, start, steps=30)
    assert np.linalg.norm(posterior.derivatives(z)[1], axis=-1).max() < STEEP
    monkeypatch.setattr("amortes.nets.kernel.modes.STEEP", 1e-4)
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
