"""The gains, roughly: what a few draws of the optimum would tell about a query.

    gain(x) = log sd[y | D, x] - mean over draws s of log sd[y | D, x, I_s],    I = x*, f*, or both,

with mixtures over particles replaced by their variance. Conditioning on the draws is in closed
form (`hints`) and done once for a dataset. The alpha network sees the terms of the sum, and learns
what is missing.

The mean is one of positive parts. A draw from an unlikely particle can make f much less certain;
such rare draws, with gains far below zero, count in an expectation, but ruin an average of sixteen.
On brute-force tasks positive parts rank queries better: docs/log.md, 2026-11-16.

Shapes: b datasets, k particles, s draws, q queries, d dimensions.
"""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.nets.distributions import GaussianMixture
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hints import KnownPlaces, KnownValues
from amortes.nets.kernel.known import Known, Places
from amortes.nets.kernel.landmarks import Landmarks
from amortes.nets.kernel.peak import peak_at
from amortes.prior.newton import Optimum

# Share of a loss of information that counts: a draw from an unlikely particle can make y much less
# certain than it was. In between, ranks of brute-force tasks are best: docs/log.md, 2026-11-16.
LOSSES = 0.3
# Landmarks, the likeliest to be the highest, that are considered when x* is known.
RIVALS = 16


@dataclass(frozen=True)
class Sketch:
    """s draws of the optimum of each dataset, and the posteriors given them."""

    optima: Optimum  # x: b x s x d, f: b x s
    rivals: Tensor  # b x RIVALS, indices of landmarks
    places: Places
    place: Known  # 2 s of them: with x*, then with x* and f*
    value: KnownValues
    log_weights: Tensor  # of particles, b x k x 3s: given x*, both, f*


@dataclass(frozen=True)
class Terms:
    """What the draws tell about queries, `b x q x s x 3`, the last as `GAINS`."""

    gain: Tensor  # log of the sd of y without the hint over that with it
    shift: Tensor  # of the mean of y, in sds without the hint

    @property
    def mean_gain(self) -> Tensor:
        """The sketched gains: `b x q x 3`."""
        return self.gain.clamp_min(0.0).mean(2)


@torch.no_grad()
def make_sketch(conditioned: Conditioned, landmarks: Landmarks, optima: Optimum) -> Sketch:
    """Condition on each of s draws of the optimum."""
    weight = conditioned.particles.log_weights.exp()[..., None]
    likely = (weight * landmarks.share).sum(1)
    likely = likely.topk(min(RIVALS, likely.shape[-1]), dim=-1).indices
    peak = peak_at(conditioned, landmarks.take(likely), optima.x)
    both = KnownPlaces.of(dataclasses.replace(peak, met=[]), optima.f)
    place, value = KnownPlaces.of(peak, None), KnownValues.of(landmarks, optima.f, places=1)
    log_weights = conditioned.particles.log_weights[..., None]
    evidence = (place.log_evidence, both.log_evidence, value.log_evidence[..., 0])
    return Sketch(
        optima=optima,
        rivals=likely,
        places=peak.places,
        place=place.known.joined(both.known),
        value=value,
        log_weights=(log_weights + torch.cat(evidence, dim=2)).log_softmax(1),
    )


def terms(
    sketch: Sketch, conditioned: Conditioned, Xq: Tensor, at_q: Moments, cross: Tensor
) -> Terms:
    """The terms at Xq, `b x q x d`; `cross` are its covariances with landmarks, `b x k x q x m`."""
    f, v = _posterior(sketch, Xq, at_q, cross)
    w = conditioned.particles.log_weights.exp()[..., None]
    noise = conditioned.noise_variance[..., None]
    mean = (w * at_q.mean).sum(1, keepdim=True)  # b x 1 x q
    before = (w * (at_q.variance + noise + (at_q.mean - mean).square())).sum(1)[:, None]
    away, weights = f - mean[:, :, None], sketch.log_weights.exp()[..., None]
    move = (weights * away).sum(1)  # b x 3s x q
    second = (weights * (v + noise[..., None] + away.square())).sum(1)
    after = (second - move.square()).clamp_min(1e-9 * before)
    gain = 0.5 * (before / after).log()
    return Terms(_arranged(gain), _arranged(move / before.sqrt()))


@torch.no_grad()
def gains_of_draws(
    sketch: Sketch, conditioned: Conditioned, Xq: Tensor, at_q: Moments, cross: Tensor
) -> Tensor:
    """What each draw takes off the entropy of y at Xq, in nats: `b x q x s x 3`.

    Losses count only in part (`LOSSES`).
    """
    f, v = _posterior(sketch, Xq, at_q, cross)  # b x k x 3s x q
    noise = conditioned.noise_variance[..., None]

    def entropy(log_weights: Tensor, f: Tensor, v: Tensor) -> Tensor:
        sd = (v + noise.reshape(*noise.shape[:2], *[1] * (v.ndim - 2))).sqrt()
        parts = (log_weights.expand_as(f), f, sd)
        return GaussianMixture(*(t.movedim(1, -1) for t in parts)).entropy()

    log_weights = conditioned.particles.log_weights[..., None]
    before = entropy(log_weights, at_q.mean, at_q.variance)[:, None]
    gain = _arranged(before - entropy(sketch.log_weights[..., None], f, v))
    return torch.where(gain < 0.0, LOSSES * gain, gain)


def _posterior(sketch: Sketch, Xq: Tensor, at_q: Moments, cross: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances of f at Xq given x*, given both, and given f*: `b x k x 3s x q`."""
    raw = sketch.places.covariance(Xq, at_q)
    raw = torch.cat([raw, raw], dim=2)
    index = sketch.rivals[:, None, None].expand(*cross.shape[:3], -1)
    rows = sketch.place.rows(raw, cross.gather(3, index))
    f, v, _ = sketch.place.below(at_q.mean, at_q.variance, rows, raw[..., -1])  # b x k x 2s x q
    f_value, sd, _, _ = sketch.value.at(at_q.mean, at_q.variance, cross, Xq.shape[-1])
    return torch.cat([f, f_value[..., 0]], dim=2), torch.cat([v, sd[..., 0].square()], dim=2)


def _arranged(t: Tensor) -> Tensor:
    """From `b x 3s x q`, as in `_posterior`, to `b x q x s x 3`, as `GAINS`."""
    place, both, value = t.mT.chunk(3, dim=-1)
    return torch.stack([place, value, both], dim=-1)
