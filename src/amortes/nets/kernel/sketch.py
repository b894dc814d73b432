"""The gains, roughly: what a few draws of the optimum would tell about a query.

    gain(x) = H[y | D, x] - mean over draws s of H[y | D, x, I_s],    I = x*, f*, or both.

Conditioning on the draws is in closed form (`hints`) and done once for a dataset; entropies of
mixtures over particles are those of `overlap`. The alpha network sees the terms of the sum, learns
from those of other draws, and adds what is missing.

The draws of one gain cost nothing until that gain is asked for.

Shapes: b datasets, k particles, s draws, q queries, d dimensions.
"""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from amortes.nets.distributions.overlap import overlap_entropy
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hints import KnownPlaces, KnownValues
from amortes.nets.kernel.landmarks import Landmarks
from amortes.nets.kernel.peak import Peak, peak_at
from amortes.prior.newton import Optimum

# Share of a loss of information that counts: a draw from an unlikely particle can make y much less
# certain than it was, and such losses are rare and large. The smaller the share, the better poor
# queries are ranked; the nearer to one, the better one optimises: docs/log.md, 2026-11-16.
LOSSES = 0.6
# Landmarks, the likeliest to be the highest, that are considered when x* is known.
RIVALS = 16


@dataclass(frozen=True)
class Terms:
    """What each draw tells about queries: `b x q x s`."""

    gain: Tensor  # entropy of y that the hint takes off, in nats
    shift: Tensor  # of the mean of y, in sds without the hint

    @property
    def counted(self) -> Tensor:
        """The gains, of losses a part."""
        return torch.where(self.gain < 0.0, LOSSES * self.gain, self.gain)

    @property
    def mean_gain(self) -> Tensor:
        """The sketched gain: `b x q`."""
        return self.counted.mean(2)


@dataclass(frozen=True)
class Given(ABC):
    """The posterior given each of s draws of the optimum, or of a part of it."""

    log_weights: Tensor  # of particles, b x k x s

    @abstractmethod
    def posterior(self, Xq: Tensor, at_q: Moments, cross: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of f at Xq, `b x q x d`: `b x k x s x q`.

        `cross` are covariances with all landmarks, `b x k x q x m`.
        """


@dataclass(frozen=True)
class GivenPlaces(Given):
    """Given x*, or both."""

    hint: KnownPlaces
    rivals: Tensor  # b x RIVALS, indices of landmarks

    def posterior(self, Xq: Tensor, at_q: Moments, cross: Tensor) -> tuple[Tensor, Tensor]:
        """See `Given`."""
        raw = self.hint.places.covariance(Xq, at_q)
        index = self.rivals[:, None, None].expand(*cross.shape[:3], -1)
        rows = self.hint.known.rows(raw, cross.gather(3, index))
        f, v, _ = self.hint.known.below(at_q.mean, at_q.variance, rows, raw[..., -1])
        return f, v


@dataclass(frozen=True)
class GivenValues(Given):
    """Given f*, at the likeliest place for it under each particle."""

    hint: KnownValues

    def posterior(self, Xq: Tensor, at_q: Moments, cross: Tensor) -> tuple[Tensor, Tensor]:
        """See `Given`."""
        f, sd, _, _ = self.hint.at(at_q.mean, at_q.variance, cross, Xq.shape[-1])
        return f[..., 0], sd[..., 0].square()


@dataclass
class Sketch:
    """s draws of the optimum of each dataset."""

    conditioned: Conditioned
    landmarks: Landmarks
    optima: Optimum  # x: b x s x d, f: b x s
    _given: dict[str, Given] = field(default_factory=dict)

    def terms(self, gain: str, Xq: Tensor, at_q: Moments, cross: Tensor) -> Terms:
        """Of the gain of that name at Xq, `b x q x d`; `cross` as in `Given.posterior`."""
        given, particles = self.given(gain), self.conditioned.particles
        f, v = given.posterior(Xq, at_q, cross)
        w = particles.log_weights.exp()[..., None]  # b x k x 1
        noise = self.conditioned.noise_variance[..., None]
        mean = (w * at_q.mean).sum(1, keepdim=True)  # b x 1 x q
        variance = at_q.variance + noise
        before = overlap_entropy(w, at_q.mean, variance)[:, None]  # b x 1 x q
        weights = given.log_weights.exp()[..., None]
        taken = before - overlap_entropy(weights, f, v + noise[..., None])  # b x s x q
        sd = (w * (variance + (at_q.mean - mean).square())).sum(1, keepdim=True).sqrt()
        shift = ((weights * f).sum(1) - mean) / sd
        return Terms(taken.mT, shift.mT)

    @torch.inference_mode(False)  # kept for calls that need gradients
    @torch.no_grad()
    def given(self, gain: str) -> Given:
        """The posterior given what that gain is about."""
        if gain not in self._given:
            log_weights = self.conditioned.particles.log_weights[..., None]
            if gain == "mes":
                value = KnownValues.of(self.landmarks, self.optima.f, places=1)
                evidence = value.log_evidence[..., 0]
                self._given[gain] = GivenValues((log_weights + evidence).log_softmax(1), value)
            else:
                peak = dataclasses.replace(self._peak, met=[])
                place = KnownPlaces.of(peak, self.optima.f if gain == "jes" else None)
                log_weights = (log_weights + place.log_evidence).log_softmax(1)
                self._given[gain] = GivenPlaces(log_weights, place, self._rivals)
        return self._given[gain]

    @cached_property
    def _rivals(self) -> Tensor:
        weight = self.conditioned.particles.log_weights.exp()[..., None]
        likely = (weight * self.landmarks.share).sum(1)
        return likely.topk(min(RIVALS, likely.shape[-1]), dim=-1).indices

    @cached_property
    def _peak(self) -> Peak:
        return peak_at(self.conditioned, self.landmarks.take(self._rivals), self.optima.x)
