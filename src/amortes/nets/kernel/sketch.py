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
from torch.nn.functional import leaky_relu

from amortes.nets.distributions.overlap import overlap_entropy
from amortes.nets.kernel.below import below
from amortes.nets.kernel.columns import Columns
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.hints import KnownPlaces, KnownValues
from amortes.nets.kernel.known import Known
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
class Before:
    """f at queries without any hint."""

    mean: Tensor  # b x k x q
    variance: Tensor  # b x k x q
    middle: Tensor  # b x q, average of the means over particles
    spread: Tensor  # b x q, their variance


@dataclass(frozen=True)
class Terms:
    """What each draw tells about queries: `b x q x s`."""

    gain: Tensor  # entropy of y that the hint takes off, in nats
    shift: Tensor  # of the mean of y, in sds without the hint
    before: Before

    @property
    def counted(self) -> Tensor:
        """The gains, of losses a part."""
        return leaky_relu(self.gain, LOSSES)

    @property
    def mean_gain(self) -> Tensor:
        """The sketched gain: `b x q`."""
        return self.counted.mean(2)


@dataclass(frozen=True)
class Given(ABC):
    """The posterior given each of s draws of the optimum, or of a part of it."""

    weights: Tensor  # of particles, given each draw and without any: b x k x 1 x (s + 1)

    @abstractmethod
    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Means and variances of f at Xq, `b x q x d`.

        Before the draws, `b x k x q`, and given each of them, `b x k x q x s`.
        """


@dataclass(frozen=True)
class GivenPlaces(Given):
    """Given x*, or both."""

    known: Known
    columns: Columns

    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `Given`."""
        mean, variance, f, v, with_star = self.columns.moments(Xq)
        star = self.known.star_mean[:, :, None], self.known.star_variance[:, :, None]
        f, v, _ = below(f, v, with_star, *star, self.known.floor)
        return mean, variance, f, v


@dataclass(frozen=True)
class GivenValues(Given):
    """Given f*, at the likeliest place for it under each particle."""

    conditioned: Conditioned
    landmarks: Landmarks
    hint: KnownValues

    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `Given`."""
        at_q = self.conditioned.moments(Xq)
        cross = self.conditioned.covariance(at_q, self.landmarks.moments)
        f, sd, _, _ = self.hint.at(at_q.mean, at_q.variance, cross, Xq.shape[-1])
        return at_q.mean, at_q.variance, f[..., 0].mT, sd[..., 0].square().mT


@dataclass
class Sketch:
    """s draws of the optimum of each dataset."""

    conditioned: Conditioned
    landmarks: Landmarks
    optima: Optimum  # x: b x s x d, f: b x s
    _given: dict[str, Given] = field(default_factory=dict)

    def terms(self, gain: str, Xq: Tensor) -> Terms:
        """Of the gain of that name at Xq, `b x q x d`."""
        given = self.given(gain)
        mean, variance, f, v = given.posterior(Xq)
        # No hint counts as one more.
        f = torch.cat([f, mean[..., None]], dim=-1)  # b x k x q x (s + 1)
        v = torch.cat([v, variance[..., None]], dim=-1)
        v = v + self.conditioned.noise_variance[..., None, None]
        entropy = overlap_entropy(given.weights, f, v)  # b x q x (s + 1)
        parts = [f.shape[-1] - 1, 1]
        after, before = torch.split_with_sizes(entropy, parts, dim=-1)
        means, middle = torch.split_with_sizes((given.weights * f).sum(1), parts, dim=-1)
        w = given.weights[..., -1]  # b x k x 1
        spread = (w * (mean - middle.mT).square()).sum(1)
        sd = (spread + (w * v[..., -1]).sum(1)).sqrt()
        return Terms(
            gain=before - after,
            shift=(means - middle) / sd[..., None],
            before=Before(mean, variance, middle.squeeze(-1), spread),
        )

    @torch.inference_mode(False)  # kept for calls that need gradients
    @torch.no_grad()
    def given(self, gain: str) -> Given:
        """The posterior given what that gain is about."""
        if gain not in self._given:
            if gain == "mes":
                value = KnownValues.of(self.landmarks, self.optima.f, places=1)
                weights = self._weights(value.log_evidence[..., 0])
                self._given[gain] = GivenValues(weights, self.conditioned, self.landmarks, value)
            else:
                peak = dataclasses.replace(self._peak, met=[])
                place = KnownPlaces.of(peak, self.optima.f if gain == "jes" else None)
                columns = Columns.of(place.places, place.known, peak.rivals)
                weights = self._weights(place.log_evidence)
                self._given[gain] = GivenPlaces(weights, place.known, columns)
        return self._given[gain]

    def _weights(self, log_evidence: Tensor) -> Tensor:
        """Those of `Given` with this evidence of the draws, `b x k x s`."""
        before = self.conditioned.particles.log_weights[..., None]
        after = (before + log_evidence).log_softmax(1)
        return torch.cat([after, before], dim=-1).exp()[:, :, None]

    @cached_property
    def _rivals(self) -> Tensor:
        weight = self.conditioned.weights[..., None]
        likely = (weight * self.landmarks.share).sum(1)
        return likely.topk(min(RIVALS, likely.shape[-1]), dim=-1).indices

    @cached_property
    def _peak(self) -> Peak:
        return peak_at(self.conditioned, self.landmarks.take(self._rivals), self.optima.x)
