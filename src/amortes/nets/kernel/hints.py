"""What knowing the optimum says about f(x), in closed form, under each particle.

A maximum at x* means f(x) <= f(x*) everywhere, and a zero gradient in every coordinate in which x*
is not on the boundary. Both are used exactly where a Gaussian allows it:

    both       condition on the zero gradient and on f(x*) = f*, then truncate f(x) at f*;
    x* only    condition on the zero gradient; moments of f(x) given f(x) <= f(x*), a truncated
               difference of two Gaussians;
    f* only    a mixture over places where the maximum may be, by draws of it on the landmarks
               whose maximum is close to f*: condition on f* there, then truncate f(x) at f*.

The evidence says how well a particle explains the hint: the density of the maximum at f*; the
density of a local maximum at x* times the probability that f(x*) is above all landmarks; or both
that and the density of f(x*) at f*. It is tempered, since all of these are approximations, the
worse the more dimensions there are (docs/log.md, 2026-11-16).

A hint that was to be expected, or about a place that x has nothing to do with, changes nothing.

Shapes: b datasets, k particles, s hints, q queries, J Gaussians, d dimensions.
"""

import dataclasses
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes.nets.base import Hint
from amortes.nets.distributions.normal import truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.known import Known, Places
from amortes.nets.kernel.landmarks import Landmarks, log_kernel_of_maximum
from amortes.nets.kernel.peak import Peak, peak_at

# Places considered when only f* is known, and the sd of the value there, relative to the sd before
# and to the square of d: the maximum is near a landmark, not on it. See docs/log.md, 2026-11-16.
PLACES = 4
PLACE_SLACK = 0.05
# Landmarks below which f is held, one after the other, when x* is known.
ROUNDS = 4
# Number of dimensions in which half of the log evidence counts.
HALF_EVIDENCE = 6.0


def temper(d: int) -> float:
    """The power of the evidence that is used in d dimensions."""
    return 1.0 / (1.0 + (d / HALF_EVIDENCE) ** 2)


@dataclass(frozen=True)
class KnownPlaces:
    """s hints with x*, or with x* and f*."""

    places: Places
    known: Known
    log_evidence: Tensor  # b x k x s
    star_mean: Tensor  # b x k x s, of f(x*) after the zero gradient
    star_sd: Tensor
    log_flat: Tensor  # b x k x s, log density of the zero gradient

    @classmethod
    def of(cls, peak: Peak, f: Tensor | None) -> Self:
        """Takes over a peak at x*, which knows only slopes; f is `b x s`."""
        star_mean, star_sd = peak.star_mean, peak.star_variance.sqrt()
        evidence = torch.zeros_like(peak.log_flat) if f is None else peak.observe_value(f)
        evidence = evidence + peak.log_density() + peak.observe_highest(ROUNDS)
        evidence = temper(peak.places.x.shape[-1]) * evidence
        return cls(peak.places, peak.known(), evidence, star_mean, star_sd, peak.log_flat)


@dataclass(frozen=True)
class KnownValues:
    """s hints with f* only: J places each, for every particle."""

    f: Tensor  # b x s
    place: Tensor  # b x k x s x J, indices of landmarks
    log_evidence: Tensor  # b x k x s x J
    star_mean: Tensor  # b x k x s x J
    star_variance: Tensor  # b x k x s x J

    @classmethod
    def of(cls, landmarks: Landmarks, f: Tensor, places: int = PLACES) -> Self:
        """Hints f, `b x s`, and how many places to consider for each."""
        kernel = log_kernel_of_maximum(landmarks, f)  # b x k x s x t
        chosen = kernel.topk(min(places, kernel.shape[-1]), dim=-1)
        place = landmarks.draws.place
        shape = (*place.shape[:2], f.shape[1], -1)
        place = place[:, :, None].expand(shape).gather(3, chosen.indices)
        # The chosen stand for all.
        total = 0.5 * temper(landmarks.X.shape[-1]) * kernel.logsumexp(-1, keepdim=True)
        evidence = chosen.values.log_softmax(-1) + total
        return cls(f, place, evidence, *landmarks.at_place(place))

    def at(
        self, mean: Tensor, variance: Tensor, cross: Tensor, d: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean, sd, standardised bound of f(x), and its covariance with f(x*): `b x k x s x q x J`.

        Given mean and variance before, `b x k x q`, and covariances with landmarks, one more axis.
        f(x*) is observed with a noise of `PLACE_SLACK` d^2 times its sd.
        """
        b, k, s, J = self.place.shape
        q = cross.shape[2]
        index = self.place.flatten(2)[:, :, None].expand(b, k, q, s * J)
        c = cross.gather(3, index).reshape(b, k, q, s, J).transpose(2, 3)
        before = variance[:, :, None, :, None]
        known = 1.0 / (1.0 + (PLACE_SLACK * d**2) ** 2)
        f, star_mean = self.f[:, None, :, None, None], self.star_mean[:, :, :, None]
        precision = known / self.star_variance[:, :, :, None]
        mean = mean[:, :, None, :, None] + c * (precision * (f - star_mean))
        sd = (before - precision * c.square()).clamp_min(VARIANCE_FLOOR * before).sqrt()
        bound = (f - mean) / sd
        new_mean, new_variance = truncated_moments(mean, sd, f)
        return new_mean, new_variance.sqrt(), bound, c


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
    cross = conditioned.covariance(Xq, at_q, landmarks.X, landmarks.moments)
    f = None if hint.f is None else hint.f[:, None]
    if hint.x is not None:
        known = KnownPlaces.of(peak_at(conditioned, landmarks, hint.x[:, None]), f)
        begin = _place_known(conditioned, Xq, at_q, known, cross)
    else:
        assert f is not None
        begin = _value_known(conditioned, Xq, at_q, KnownValues.of(landmarks, f), landmarks, cross)
    return Start(*(getattr(begin, field.name).squeeze(2) for field in dataclasses.fields(begin)))


def _value_known(
    conditioned: Conditioned,
    Xq: Tensor,
    at_q: Moments,
    known: KnownValues,
    landmarks: Landmarks,
    cross: Tensor,
) -> Start:
    mean, sd, bound, covariance = known.at(at_q.mean, at_q.variance, cross, Xq.shape[-1])
    star_sd = known.star_variance.sqrt()[:, :, :, None]
    correlation = (covariance / (at_q.sd[:, :, None, :, None] * star_sd)).clamp(-1.0, 1.0)
    distance = conditioned.square_distance(Xq[:, None], landmarks.X[:, None])  # b x k x q x m
    index = known.place.squeeze(2)[:, :, None].expand(-1, -1, Xq.shape[1], -1)
    star_mean = known.star_mean[:, :, :, None]
    zero = torch.zeros_like(star_mean)
    return Start(
        mean=mean,
        sd=sd,
        log_evidence=known.log_evidence[:, :, :, None],
        truncation=bound,
        star_mean=star_mean,
        star_sd=star_sd,
        correlation=correlation,
        distance=distance.gather(3, index)[:, :, None],
        explained=zero,
        log_flat=zero,
    )


def _place_known(
    conditioned: Conditioned, Xq: Tensor, at_q: Moments, hint: KnownPlaces, cross: Tensor
) -> Start:
    known, d = hint.known, Xq.shape[-1]
    raw = hint.places.covariance(Xq, at_q)
    rows = known.rows(raw, cross)
    mean, variance, bound = known.below(at_q.mean, at_q.variance, rows, raw[..., -1])
    # After the zero gradient alone: the first d rows.
    slopes, star_slopes = rows[..., :d], known.star_rows[..., :d]
    before = at_q.variance[:, :, None]
    flat = (before - slopes.square().sum(-1)).clamp_min(known.floor)
    covariance = raw[..., -1] - (slopes @ star_slopes[..., None]).squeeze(-1)
    correlation = (covariance / (flat.sqrt() * hint.star_sd[..., None])).clamp(-1.0, 1.0)
    distance = conditioned.square_distance(hint.places.x[:, None], Xq[:, None])  # b x k x s x q
    return Start(
        mean=mean[..., None],
        sd=variance.sqrt()[..., None],
        log_evidence=hint.log_evidence[..., None, None],
        truncation=bound[..., None],
        star_mean=hint.star_mean[..., None, None],
        star_sd=hint.star_sd[..., None, None],
        correlation=correlation[..., None],
        distance=distance[..., None],
        explained=(flat / before).log()[..., None],
        log_flat=hint.log_flat[..., None, None],
    )
