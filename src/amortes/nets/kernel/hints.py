"""What knowing the optimum says about f(x), in closed form, under each particle.

A maximum at x* means f(x) <= f(x*) everywhere, and a zero gradient in every coordinate in which x*
is not on the boundary. Both are used exactly where a Gaussian allows it:

    both       condition on the zero gradient and on f(x*) = f*, then truncate f(x) at f*;
    x* only    condition on the zero gradient; moments of f(x) given f(x) <= f(x*), a truncated
               difference of two Gaussians;
    f* only    a mixture over places where the maximum may be, by draws of it on the landmarks
               whose maximum is close to f*: condition on f* there, then truncate f(x) at f*.

The evidence says how well a particle explains the hint: the density of the maximum at f*; the
probability that f(x*) is above all landmarks; or the density of f(x*) at f* and the probability
that the landmarks stay below. (The density of the zero gradient would belong there, too, but
misleads: docs/log.md, 2026-11-15. The correction may look at it.)

A hint that was to be expected, or about a place that x has nothing to do with, changes nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.nets.base import Hint
from amortes.nets.distributions.normal import truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.landmarks import Landmarks, log_kernel_of_maximum
from amortes.nets.kernel.peak import peak_at

# Places considered when only f* is known, and the sd of the value there, relative to the sd before
# and per dimension: the maximum is near a landmark, not on it. See docs/log.md, 2026-11-16.
PLACES = 4
PLACE_SLACK = 0.15
# Landmarks below which f is held, one after the other, when x* is known.
ROUNDS = 4


@dataclass(frozen=True)
class Start:
    """J Gaussians for f(x) given the hint, and what the correction may look at.

    Shapes `b x k x q x J`, or such that they broadcast to it.
    """

    mean: Tensor
    sd: Tensor
    log_evidence: Tensor  # of the particle and, within it, of the component
    truncation: Tensor  # (bound - mean) / sd before truncation
    star_mean: Tensor  # posterior of f(x*), after the zero gradient
    star_sd: Tensor
    correlation: Tensor  # posterior correlation of f(x) and f(x*)
    distance: Tensor  # squared, from x to x*, in lengthscales
    explained: Tensor  # log of the variance ratio due to the zero gradient
    log_flat: Tensor  # log density of the zero gradient


def start(
    conditioned: Conditioned, Xq: Tensor, at_q: Moments, hint: Hint, landmarks: Landmarks
) -> Start:
    """Closed-form start at Xq, `b x q x d`, whose posterior moments are `at_q`."""
    if hint.x is not None:
        return _place_known(conditioned, Xq, at_q, hint.x, hint.f, landmarks)
    assert hint.f is not None
    return _value_known(conditioned, Xq, at_q, hint.f, landmarks)


def _value_known(
    conditioned: Conditioned, Xq: Tensor, at_q: Moments, f: Tensor, landmarks: Landmarks
) -> Start:
    kernel = log_kernel_of_maximum(landmarks, f)  # b x k x t
    chosen = kernel.topk(min(PLACES, kernel.shape[-1]), dim=-1)
    place = landmarks.place.gather(2, chosen.indices)  # b x k x J
    # The chosen stand for all.
    share = chosen.values.log_softmax(-1) + kernel.logsumexp(-1, keepdim=True)

    d, n = Xq.shape[-1], at_q.whitened.shape[2]
    rows = torch.arange(len(place))[:, None, None]
    x = landmarks.X[rows, place]  # b x k x J x d
    whitened = landmarks.moments.whitened.gather(3, place[:, :, None].expand(-1, -1, n, -1))
    distance = conditioned.square_distance(Xq[:, None], x)  # b x k x q x J
    cross = conditioned.kernel_at(distance) - at_q.whitened.mT @ whitened
    star_mean, star_variance = (t[:, :, None] for t in landmarks.at_place(place))
    variance = at_q.variance[..., None]
    correlation = (cross / (variance * star_variance).sqrt()).clamp(-1.0, 1.0)
    target = f[:, None, None, None]
    slack = PLACE_SLACK * d
    mean, sd, bound = _given_value(
        conditioned,
        at_q.mean[..., None],
        variance,
        correlation,
        star_mean,
        star_variance,
        target,
        slack,
    )
    zero = torch.zeros_like(star_mean)
    return Start(
        mean=mean,
        sd=sd,
        log_evidence=share[:, :, None],
        truncation=bound,
        star_mean=star_mean,
        star_sd=star_variance.sqrt(),
        correlation=correlation,
        distance=distance,
        explained=zero,
        log_flat=zero,
    )


def _place_known(
    conditioned: Conditioned,
    Xq: Tensor,
    at_q: Moments,
    x: Tensor,
    f: Tensor | None,
    landmarks: Landmarks,
) -> Start:
    q, m = Xq.shape[1], landmarks.X.shape[1]
    points = torch.cat([Xq, landmarks.X], dim=1)
    peak = peak_at(conditioned, points, at_q.joined(landmarks.moments), x)
    star_mean, star_sd = peak.star_mean, peak.star_variance.sqrt()
    explained = (peak.variance[..., :q] / at_q.variance).log()
    correlation = peak.covariance[..., :q] / (peak.variance[..., :q].sqrt() * star_sd)
    evidence = torch.zeros_like(peak.log_flat) if f is None else peak.observe_value(f)
    evidence = evidence + peak.log_density() + peak.observe_highest(m, ROUNDS)
    mean, variance, bound = peak.below(q)
    return Start(
        mean=mean[..., None],
        sd=variance.sqrt()[..., None],
        log_evidence=evidence[..., None, None],
        truncation=bound[..., None],
        star_mean=star_mean[..., None],
        star_sd=star_sd[..., None],
        correlation=correlation.clamp(-1.0, 1.0)[..., None],
        distance=conditioned.square_distance(Xq[:, None], x[:, None, None]),
        explained=explained[..., None],
        log_flat=peak.log_flat[..., None, None],
    )


def _given_value(
    conditioned: Conditioned,
    mean: Tensor,
    variance: Tensor,
    correlation: Tensor,
    star_mean: Tensor,
    star_variance: Tensor,
    f: Tensor,
    slack: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and sd of f(x) given f(x*) = f and f(x) <= f, and the standardised bound.

    f(x*) is observed with a noise of `slack` times its sd.
    """
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None, None]
    known = 1.0 / (1.0 + slack**2)
    surprise = (f - star_mean) / star_variance.sqrt()
    mean = mean + known * correlation * variance.sqrt() * surprise
    sd = (variance * (1.0 - known * correlation.square())).clamp_min(floor).sqrt()
    bound = (f - mean) / sd
    new_mean, new_variance = truncated_moments(mean, sd, f.expand_as(mean))
    return new_mean, new_variance.sqrt(), bound
