"""Where the optimum may be: candidate optima, and draws of (x*, f*) among them.

A fixed low-discrepancy set, part global and part around the best observations at several scales of
the lengthscale, is scored by the particles' mixture; the most promising points stay as landmarks.
Exact joint draws of f on them say how f* is distributed under each particle and how likely each
landmark is to be the optimum, and give textbook estimates of the three gains at any query
(`textbook_gains`), which the alpha network takes as features and as its unit of measure.

All fixed: no random numbers, the same data give the same landmarks.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions.normal import log_normal, truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.particles import normal_points
from amortes.prior.newton import starting_points

# Chosen by the gain in log-likelihood from hints: docs/log.md, 2026-11-15.
BANDWIDTH = 0.5
SMALLEST_BANDWIDTH = 0.02

# A rough score is enough to choose candidates, and most of the weight is on a few particles.
SCORING_PARTICLES = 4
# Gains vary less between draws than between particles.
TEXTBOOK_DRAWS = 4


@dataclass(frozen=True, kw_only=True)
class LandmarkConfig:
    """How many candidates are looked at, and how many stay."""

    count: int = 64
    num_global: int = 128
    num_centres: int = 8
    per_centre: int = 24
    draws: int = 32  # of the maximum, per particle


@dataclass(frozen=True)
class Landmarks:
    """m candidate optima of each of b datasets, and t draws of the optimum per particle."""

    X: Tensor  # b x m x d
    moments: Moments  # b x k x m
    covariance: Tensor  # b x k x m x m
    share: Tensor  # b x m, probability of being the best landmark
    place: Tensor  # b x k x t, index of the best landmark in each draw
    maximum: Tensor  # b x k x t, its value

    def at_place(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance at landmarks with indices `b x k x s`: `b x k x s`."""
        return self.moments.mean.gather(2, place), self.moments.variance.gather(2, place)


def find_landmarks(conditioned: Conditioned, config: LandmarkConfig) -> Landmarks:
    """The most promising of the candidates, and joint draws of f on them."""
    b, _, d = conditioned.X.shape
    candidates = _candidates(conditioned, config)
    few = conditioned.heaviest(min(SCORING_PARTICLES, conditioned.particles.log_weights.shape[1]))
    at = few.moments(candidates)
    w = few.particles.log_weights.exp()[..., None]
    mean = (w * at.mean).sum(1)
    sd = (w * (at.variance + at.mean.square())).sum(1).sub(mean.square()).clamp_min(1e-12).sqrt()
    # Half by the odds of beating the best mean, half by an optimistic bound; each point once.
    again = _repeated(candidates)
    odds = ((mean - mean.amax(-1, keepdim=True)) / sd).where(~again, -torch.inf)
    keep = odds.topk(config.count // 2, dim=-1).indices
    bound = (mean + 2.0 * sd).where(~again, -torch.inf).scatter(1, keep, -torch.inf)
    keep = torch.cat([keep, bound.topk(config.count - config.count // 2, dim=-1).indices], dim=1)
    X = candidates.gather(1, keep[..., None].expand(-1, -1, d))
    moments = conditioned.moments(X)
    k = moments.mean.shape[1]
    covariance = conditioned.covariance(X, moments, X, moments)
    jitter = 1e-6 * conditioned.prior_variance[..., None].expand_as(moments.mean)
    L = linalg.cholesky(covariance + torch.diag_embed(jitter))
    normals = normal_points(config.count, k * config.draws).to(X.dtype)
    normals = normals.reshape(k, config.draws, config.count).mT  # k x m x t
    maximum, place = (moments.mean[..., None] + L @ normals).max(dim=2)  # b x k x t
    w = conditioned.particles.log_weights.exp()[..., None]
    mass = (w / config.draws).expand_as(maximum)
    share = torch.zeros(b, config.count, dtype=X.dtype)
    share = share.scatter_add(1, place.flatten(1), mass.flatten(1))
    return Landmarks(X, moments, covariance, share, place, maximum)


def _repeated(X: Tensor) -> Tensor:
    """Which points, `b x c x d`, equal an earlier one (many are clipped to a corner): `b x c`."""
    direction = normal_points(X.shape[-1], 1)[0].to(X.dtype) + math.pi
    key, order = (X @ direction).sort(dim=-1, stable=True)
    same = torch.nn.functional.pad(key.diff(dim=-1) == 0, (1, 0))
    return torch.zeros_like(same).scatter(1, order, same)


def log_kernel_of_maximum(landmarks: Landmarks, f: Tensor) -> Tensor:
    """How close each draw of the maximum is to f, `b`: `b x k x t`.

    The mean of their exponentials estimates the density of the maximum at f under each particle;
    the bandwidth is half the standard deviation of the draws.
    """
    draws = landmarks.maximum
    square = (BANDWIDTH * draws.std(-1, keepdim=True)).square() + SMALLEST_BANDWIDTH**2
    return log_normal((f[:, None, None] - draws) / square.sqrt()) - 0.5 * square.log()


def textbook_gains(
    conditioned: Conditioned, landmarks: Landmarks, at_q: Moments, cross: Tensor
) -> Tensor:
    """Estimates of the PES, MES and JES gains at q queries: `b x q x 3`, all >= 0.

    `cross` is the posterior covariance of queries and landmarks, `b x k x q x m`. Conditional
    distributions are matched by a Gaussian, and gains averaged over particles and draws.
    """
    q = at_q.mean.shape[-1]
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None, None]
    place = landmarks.place[..., :TEXTBOOK_DRAWS]  # b x k x s
    star_mean, star_variance = (t[:, :, None] for t in landmarks.at_place(place))  # b x k x 1 x s
    c = cross.gather(3, place[:, :, None].expand(-1, -1, q, -1))  # b x k x q x s
    mean, variance = at_q.mean[..., None], at_q.variance[..., None]
    value = landmarks.maximum[:, :, None, :TEXTBOOK_DRAWS]
    noise = conditioned.noise_variance[..., None, None]

    gap_variance = (variance + star_variance - 2.0 * c).clamp_min(floor)
    _, kept = truncated_moments(mean - star_mean, gap_variance.sqrt(), torch.zeros_like(c))
    slope = (c - variance) / gap_variance
    pes = variance - slope.square() * (gap_variance - kept)

    _, mes = truncated_moments(mean, variance.sqrt(), value)

    regression = c / star_variance
    conditional = (variance - regression * c).clamp_min(floor)
    _, jes = truncated_moments(mean + regression * (value - star_mean), conditional.sqrt(), value)
    remaining = torch.stack([pes, mes, jes]).clamp_min(0.0)  # 3 x b x k x q x s
    gains = 0.5 * ((variance + noise) / (remaining + noise)).log()  # 3 x b x k x q x s
    w = conditioned.particles.log_weights.exp()[..., None]
    return (w * gains.mean(-1)).sum(2).clamp_min(0.0).movedim(0, -1)


def _candidates(conditioned: Conditioned, config: LandmarkConfig) -> Tensor:
    """Global points, the best observed points, and points around these: `b x c x d`."""
    b, _, d = conditioned.X.shape
    n = conditioned.num_observed
    hyper = conditioned.particles.hyper
    w = conditioned.particles.log_weights.exp()
    a = conditioned.coefficients[..., :n]
    fitted = conditioned.y - (w[..., None] * conditioned.noise_variance[..., None] * a).sum(1)
    order = fitted.argsort(dim=-1, descending=True)
    top = order[:, torch.arange(config.num_centres) % n]  # repeats when there are few points
    centres = conditioned.X[:, :n].gather(1, top[..., None].expand(-1, -1, d))
    width = (w[..., None] * hyper.lengthscale.log()).sum(1).exp().clamp(0.02, 1.0)  # b x d
    offsets = _offsets(d, config.num_centres, config.per_centre).to(centres.dtype)
    around = (centres[:, :, None] + width[:, None, None] * offsets).clamp(0.0, 1.0).flatten(1, 2)
    everywhere = starting_points(d, config.num_global).to(centres.dtype).expand(b, -1, -1)
    return torch.cat([centres, around, everywhere], dim=1)


@lru_cache(maxsize=64)
def _offsets(d: int, centres: int, each: int) -> Tensor:
    """Steps around a centre in lengthscales, `centres x each x d`, from small to large."""
    scale = torch.logspace(-1.7, -0.1, each, dtype=torch.float64)[:, None]
    return normal_points(d, centres * each).reshape(centres, each, d) * scale
