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

    @classmethod
    def of(cls, peak: Peak, f: Tensor | None) -> Self:
        """Takes over a peak at x*, which knows only slopes; f is `b x s`."""
        evidence = torch.zeros_like(peak.log_flat) if f is None else peak.observe_value(f)
        evidence = evidence + peak.log_density() + peak.observe_highest(ROUNDS)
        evidence = temper(peak.places.x.shape[-1]) * evidence
        return cls(peak.places, peak.known(), evidence)


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


def given_hint(
    conditioned: Conditioned, at_q: Moments, hint: Hint, landmarks: Landmarks
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, sd and log evidence of J Gaussians for f at queries, given the hint.

    The first two are `b x k x q x J`; the evidence, of the particle and within it of the component,
    broadcasts to that.
    """
    cross = conditioned.covariance(at_q, landmarks.moments)
    f = None if hint.f is None else hint.f[:, None]
    if hint.x is None:
        assert f is not None
        value = KnownValues.of(landmarks, f)
        d = landmarks.X.shape[-1]
        mean, sd, _, _ = value.at(at_q.mean, at_q.variance, cross, d)
        return mean.squeeze(2), sd.squeeze(2), value.log_evidence[:, :, 0, None]
    place = KnownPlaces.of(peak_at(conditioned, landmarks, hint.x[:, None]), f)
    known, raw = place.known, place.places.covariance(at_q)
    rows = known.rows(raw, cross)
    m, v, _ = known.below(at_q.mean, at_q.variance, rows, raw[..., -1])
    evidence = place.log_evidence[..., None]
    return m.squeeze(2)[..., None], v.squeeze(2).sqrt()[..., None], evidence
