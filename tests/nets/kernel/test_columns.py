import dataclasses

import pytest
import torch
from torch import Tensor

from amortes.nets.kernel import columns
from amortes.nets.kernel.columns import Columns
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.nets.kernel.peak import Peak, peak_at
from amortes.nets.kernel.rivals import Rivals
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch
from tests.nets.kernel.test_peak import rivals

CASES = {
    "se": PRIORS["robust"],
    "matern52": dataclasses.replace(PRIORS["robust"], kernel="matern52"),
    "warped": PRIORS["real"].models[1][1],
    "mixture": PRIORS["real"],
}


def digested(task: TaskBatch, prior: GPPrior) -> tuple[Conditioned, Rivals, Peak]:
    """Maxima at three places of each dataset, above four rivals, two of which are met."""
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    conditioned = condition(prior, particles, task.X, task.y)
    at = rivals(conditioned, task.Xq[:, :4])
    x = torch.cat([task.optimum.x[:, None], task.Xq[:, 4:6]], dim=1)
    peak = peak_at(conditioned, at, x)
    peak.observe_value(task.optimum.f[:, None].expand(-1, 3))
    peak.observe_highest(2)
    return conditioned, at, peak


def by_rows(X: Tensor, conditioned: Conditioned, at: Rivals, peak: Peak) -> tuple[Tensor, ...]:
    """The same through `known`, row by row."""
    moments, known = conditioned.moments(X), peak.known()
    raw = peak.places.covariance(moments)
    rows = known.rows(raw, conditioned.covariance(moments, at.moments))
    mean = moments.mean[:, :, None] + (rows @ known.pull[..., None]).squeeze(-1)
    variance = moments.variance[:, :, None] - rows.square().sum(-1)
    with_star = raw[..., -1] - (rows @ known.star_rows[..., None]).squeeze(-1)
    given = mean, variance.clamp_min(known.floor), with_star
    return moments.mean, moments.variance, *(t.mT for t in given)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunk", [1, columns.CHUNK])
def test_moments_and_gradients_are_those_by_rows(
    task: TaskBatch, case: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "CHUNK", chunk)
    conditioned, at, peak = digested(task, CASES[case])
    X = torch.cat([task.Xq, task.X[:, :3]], dim=1).requires_grad_()
    found = Columns.of(peak.places, peak.known(), at).moments(X)
    expected = by_rows(X, conditioned, at, peak)
    rng = torch.Generator().manual_seed(0)
    for actual, true in zip(found, expected, strict=True):
        assert actual.shape == true.shape
        assert torch.allclose(actual, true, rtol=1e-8, atol=1e-8)
        weights = torch.randn(true.shape, generator=rng, dtype=true.dtype)
        slope, true_slope = (
            torch.autograd.grad(moment, X, weights, retain_graph=True)[0]
            for moment in (actual, true)
        )
        assert torch.allclose(slope, true_slope, rtol=1e-6, atol=1e-6)
