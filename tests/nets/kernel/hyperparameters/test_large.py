from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.hyperparameters import large
from amortes.nets.kernel.hyperparameters.hyper_posterior import observed_covariance
from amortes.nets.kernel.hyperparameters.inference import infer
from amortes.nets.kernel.hyperparameters.large import LEAST_PARTICLES, MOST, telling, weighed_by_all
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import generator

PRIOR = PRIORS["robust"]


def log_normal(y: Tensor, covariance: Tensor) -> Tensor:
    """Log density of y, `b x n`, under covariances `b x k x n x n`: `b x k`."""
    normal: Any = MultivariateNormal(torch.zeros_like(y)[:, None], covariance)
    density: Tensor = normal.log_prob(y[:, None])
    return density


def test_the_best_and_some_of_the_others_are_told() -> None:
    y = torch.rand(3, 3 * MOST, generator=generator(0), dtype=torch.float64)
    part = telling(y)
    assert part.shape == (3, MOST)
    for row, results in zip(part, y, strict=True):
        assert len(row.unique()) == MOST
        assert (row.diff() > 0).all()
        best = results.topk(MOST // 2).indices
        assert torch.isin(best, row).all()
        others = row[~torch.isin(row, best)]
        assert others.diff().max() < 3 * MOST // 10  # nowhere a gap


def test_weights_are_those_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "MOST", 12)
    task = TaskStream(PRIOR, 3, TaskConfig(batch_size=2, num_queries=2)).batch_of(0, 2, 20)
    part = telling(task.y)
    rows = torch.arange(2)[:, None]
    X, y = task.X[rows, part], task.y[rows, part]
    found = infer(PRIOR, X, y[:, None], torch.zeros(2, 1), ParticleConfig(count=4))
    count = found.particles.log_weights.shape[1] * 12 // 20
    ours, root = weighed_by_all(PRIOR, found.particles, found.root, part, task.X, task.y)
    assert ours.log_weights.shape == (2, max(count, LEAST_PARTICLES))
    covariance = observed_covariance(PRIOR, ours.hyper, task.X[:, None])
    assert torch.allclose(root @ root.mT, covariance, atol=1e-9)
    some = observed_covariance(PRIOR, ours.hyper, X[:, None])
    ratio = log_normal(task.y, covariance) - log_normal(y, some)
    change = ours.log_weights - ratio  # the weights before, up to a constant
    spread = (change - change.amax(-1, keepdim=True)).exp()
    assert torch.allclose(ours.log_weights.exp().sum(-1), torch.ones(2).double())
    # Before, all that were kept had a weight of at least the threshold, and the sum was one.
    evidence = found.particles.log_evidence + (
        ratio + (spread / spread.sum(-1, True)).log()
    ).logsumexp(-1)
    torch.testing.assert_close(ours.log_evidence, evidence)


@torch.no_grad()
def test_predictions_are_about_those_of_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    network = KernelNetwork(KernelConfig(encoder=None), PRIOR).eval()
    task = TaskStream(PRIOR, 4, TaskConfig(batch_size=2, num_queries=8)).batch_of(0, 2, 60)
    exact = network.predict(network.condition(task.X, task.y), task.Xq)
    monkeypatch.setattr(large, "MOST", 30)
    ours = network.predict(network.condition(task.X, task.y), task.Xq)
    off = (ours.mean - exact.mean) / exact.variance.sqrt()
    assert off.abs().max() < 0.5
    assert (ours.variance / exact.variance).log().abs().max() < 1.0
