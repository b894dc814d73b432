import pytest
import torch
from torch import Tensor

from amortes.nets.distributions import GaussianMixture
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, condition
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.improvement import Improvement
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch


def conditioned_on(task: TaskBatch, name: str, pending: Tensor | None = None) -> Conditioned:
    prior = PRIORS[name]
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=4))
    conditioned = condition(prior, particles, task.X, task.y)
    return conditioned if pending is None else conditioned.with_pending(pending)


@pytest.mark.parametrize("name", ["robust", "real"])
@pytest.mark.parametrize("pending", [False, True])
def test_moments_and_gradients_are_those_of_automatic_differentiation(
    warped: TaskBatch, name: str, pending: bool
) -> None:
    conditioned = conditioned_on(warped, name, warped.Xq[:, :1] if pending else None)
    x = 0.3 + 0.0 * warped.X[:, :1]
    at_x, over = conditioned.moments(x), Improvement(conditioned, x[:, 0])
    gradients = []
    for direct in (True, False):
        Xq = warped.Xq.clone().requires_grad_()
        if direct:
            mean, variance = over.moments(Xq)
        else:
            at_q = conditioned.moments(Xq)
            mean = at_q.mean - at_x.mean
            shared = conditioned.covariance(at_q, at_x).squeeze(-1)
            variance = at_q.variance + at_x.variance - 2.0 * shared
        assert (variance > VARIANCE_FLOOR).all()
        value = (mean.sin() + variance.log()).sum()
        gradients.append((mean, variance, *torch.autograd.grad(value, Xq)))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def test_a_point_improves_nothing_upon_itself(task: TaskBatch) -> None:
    conditioned = conditioned_on(task, "robust")
    x = task.X[:, :1].clone().requires_grad_()
    mean, variance = Improvement(conditioned, x.detach()[:, 0]).moments(x)
    assert mean.abs().max() < 1e-9
    assert (variance < 1e-9).all()
    assert (variance > 0.0).all()
    (gradient,) = torch.autograd.grad(variance.sum(), x)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["robust", "real"])
def test_log_expected_improvement_is_that_of_the_mixture(warped: TaskBatch, name: str) -> None:
    conditioned = conditioned_on(warped, name)
    over = Improvement(conditioned, warped.X[:, 0])
    # By improvements up to thousands of standard deviations below zero.
    for shift in (0.0, -3.0, -3e2, -3e4):
        over.offset = over.offset + shift
        gradients = []
        for direct in (True, False):
            Xq = warped.Xq.clone().requires_grad_()
            if direct:
                value = over.log_expected(Xq)
            else:
                mean, variance = over.moments(Xq)
                log_weights = conditioned.particles.log_weights[:, None]
                mixture = GaussianMixture(log_weights, mean.mT, variance.sqrt().mT)
                value = mixture.log_expected_improvement(torch.zeros((), dtype=torch.float64))
            gradients.append((value, *torch.autograd.grad(value.sum(), Xq)))
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
        for ours, at_once in zip(
            gradients[0], over.log_expected_with_gradient(warped.Xq), strict=True
        ):
            torch.testing.assert_close(ours, at_once)
