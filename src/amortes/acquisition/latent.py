"""What only the kernel network knows: the function behind the noise, and joint distributions.

Every component of its predictive mixture is a particle's Gaussian for f(x) plus that particle's
noise, N(m, v + s^2), so the distribution of f(x) is the same mixture with v alone. Two function
values are correlated under particle p as cov_p(x, x') / sqrt(v_p(x) v_p(x')); the average over
particles describes how values at several points move together.
"""

import torch
from torch import Tensor

from amortes.nets.distributions import GaussianMixture, Predictive
from amortes.nets.kernel.conditioning import ROUGHLY, VARIANCE_FLOOR
from amortes.nets.kernel.network import KernelState

CHUNK = 1 << 17
"""Numbers per temporary: 1 MB. With 45 points, eight times as many took 2.5 times as long."""


def without_noise(state: object, predicted: Predictive) -> Predictive:
    """The distribution of f given that of y, for one dataset, both `1 x q`.

    A network that cannot tell the two apart has its distribution of y returned.
    """
    if not isinstance(state, KernelState) or not isinstance(predicted, GaussianMixture):
        return predicted
    conditioned = state.conditioned
    per_particle = predicted.sds.shape[-1] // conditioned.noise_variance.shape[-1]

    def for_components(t: Tensor) -> Tensor:  # 1 x k -> 1 x 1 x k J
        return t.repeat_interleave(per_particle, dim=-1)[:, None]

    floor = VARIANCE_FLOOR * for_components(conditioned.prior_variance)
    variance = predicted.sds.square() - for_components(conditioned.noise_variance)
    return GaussianMixture(predicted.log_weights, predicted.means, variance.clamp_min(floor).sqrt())


def lengthscale(state: object) -> Tensor | None:
    """Lengths over which one dataset's function varies, `d`; None if the network does not know."""
    if not isinstance(state, KernelState):
        return None
    return state.conditioned.typical_lengthscale[0]


def mean(state: object, Xq: Tensor) -> Tensor | None:
    """Posterior mean at Xq, `m x d`, of one dataset: `m`; None if the network must predict it."""
    if not isinstance(state, KernelState):
        return None
    conditioned = state.conditioned
    return (conditioned.weights[..., None] * conditioned.mean(Xq[None])).sum(1)[0]


def observed_mean(state: object) -> Tensor | None:
    """Posterior mean at the points of one dataset, `n`; None if the network must predict it."""
    if not isinstance(state, KernelState):
        return None
    conditioned = state.conditioned
    return (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)[0]


def noise_sd(state: object) -> float | None:
    """Standard deviation of one dataset's noise; None if the network does not know."""
    if not isinstance(state, KernelState):
        return None
    conditioned = state.conditioned
    return float((conditioned.weights * conditioned.noise_variance).sum().sqrt())


def improvement(state: object, Xq: Tensor, x: Tensor) -> Predictive | None:
    """Distribution of f(Xq) - f(x) for one dataset, Xq `m x d`, x `d`: batch shape `m`.

    None if the network only knows one point at a time.
    """
    if not isinstance(state, KernelState):
        return None
    conditioned, X = state.conditioned, x[None, None]
    at_q, at_x = conditioned.moments(Xq[None]), conditioned.moments(X)
    shared = conditioned.covariance(Xq[None], at_q, X, at_x).squeeze(-1)  # 1 x k x m
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
    variance = (at_q.variance + at_x.variance - 2.0 * shared).clamp_min(floor)
    log_weights = conditioned.particles.log_weights
    return GaussianMixture(log_weights, (at_q.mean - at_x.mean)[0].mT, variance[0].sqrt().mT)


def rough_moments(state: object, Xq: Tensor) -> tuple[Tensor, Tensor] | None:
    """Mean and standard deviation of f at Xq, `m x d`, by a few particles: `m` each.

    Ten times as fast as a prediction; None if the network does not know.
    """
    if not isinstance(state, KernelState):
        return None
    few = state.conditioned.thinned(ROUGHLY)
    size = max(1, CHUNK // few.coefficients.numel())
    with torch.no_grad():
        parts = [few.rough_moments(part[None]) for part in torch.split(Xq, size)]
    mean, sd = (torch.cat(each, dim=1)[0] for each in zip(*parts, strict=True))
    return mean, sd


def correlation(state: object, Xq: Tensor, *, noise: bool) -> Tensor | None:
    """Correlations of f (or y, with noise) at the q points of each batch.

    Xq `b x q x d` against one dataset: `b x q x q`; None if the network does not know.
    """
    if not isinstance(state, KernelState):
        return None
    conditioned = state.conditioned
    at_q = conditioned.moments(Xq)  # b x k x q: the one dataset broadcasts
    covariance = conditioned.covariance(Xq, at_q, Xq, at_q)
    variance = at_q.variance
    if noise:
        variance = variance + conditioned.noise_variance[..., None]
    weights = conditioned.weights[..., None, None]
    scale = (variance[..., :, None] * variance[..., None, :]).sqrt()
    average = (weights * (covariance / scale).clamp(-1.0, 1.0)).sum(1)
    one = torch.eye(Xq.shape[-2], dtype=Xq.dtype)
    return average * (1.0 - one) + one


def log_evidence(state: object) -> float | None:
    """Logarithm of the density of one dataset's y under the prior; None if nobody knows."""
    if not isinstance(state, KernelState):
        return None
    return float(state.conditioned.particles.log_evidence)
