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
from amortes.nets.distributions.normal import log_ndtr, truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.particles import normal_points
from amortes.prior.newton import starting_points

# Chosen by the gain in log-likelihood from hints: docs/log.md, 2026-11-15.
BANDWIDTH = 0.5
SMALLEST_BANDWIDTH = 0.02

# A rough score is enough to choose candidates, and most of the weight is on a few particles.
SCORING_PARTICLES = 4


@dataclass(frozen=True, kw_only=True)
class LandmarkConfig:
    """How many candidates are looked at, and how many stay."""

    count: int = 64
    num_global: int = 128
    num_centres: int = 8
    per_centre: int = 24
    draws: int = 4
    maxima: int = 32


@dataclass(frozen=True)
class Landmarks:
    """m candidate optima of each of b datasets, and s draws of the optimum per particle."""

    X: Tensor  # b x m x d
    moments: Moments  # b x k x m
    covariance: Tensor  # b x k x m x m
    share: Tensor  # b x m, probability of being the best landmark
    drawn: Tensor  # b x k x s, index of the best landmark in each draw
    value: Tensor  # b x k x s, its value
    maxima: Tensor  # b x k x t, values of the best landmark in all draws, of which s are the first


def find_landmarks(conditioned: Conditioned, config: LandmarkConfig) -> Landmarks:
    """The most promising of the candidates, and joint draws of f on them."""
    b, _, d = conditioned.X.shape
    candidates = _candidates(conditioned, config)
    few = conditioned.heaviest(min(SCORING_PARTICLES, conditioned.particles.log_weights.shape[1]))
    at = few.moments(candidates)
    w = few.particles.log_weights.exp()[..., None]
    mean = (w * at.mean).sum(1)
    sd = (w * (at.variance + at.mean.square())).sum(1).sub(mean.square()).clamp_min(1e-12).sqrt()
    # Half by the odds of beating the best mean, half by an optimistic bound.
    odds = (mean - mean.amax(-1, keepdim=True)) / sd
    keep = odds.topk(config.count // 2, dim=-1).indices
    bound = (mean + 2.0 * sd).scatter(1, keep, -torch.inf)
    keep = torch.cat([keep, bound.topk(config.count - config.count // 2, dim=-1).indices], dim=1)
    X = candidates.gather(1, keep[..., None].expand(-1, -1, d))
    moments = conditioned.moments(X)
    k = moments.mean.shape[1]
    covariance = conditioned.covariance(X, moments, X, moments)
    jitter = 1e-6 * conditioned.prior_variance[..., None].expand_as(moments.mean)
    L = linalg.cholesky(covariance + torch.diag_embed(jitter))
    normals = normal_points(config.count, k * config.maxima).to(X.dtype)
    normals = normals.reshape(k, config.maxima, config.count).mT  # k x m x t
    maxima, best = (moments.mean[..., None] + L @ normals).max(dim=2)  # b x k x t
    value, drawn = maxima[..., : config.draws], best[..., : config.draws]
    w = conditioned.particles.log_weights.exp()[..., None]
    mass = (w / config.maxima).expand_as(maxima)
    share = torch.zeros(b, config.count, dtype=X.dtype)
    share = share.scatter_add(1, best.flatten(1), mass.flatten(1))
    return Landmarks(X, moments, covariance, share, drawn, value, maxima)


def log_density_of_maximum(landmarks: Landmarks, f: Tensor) -> Tensor:
    """Log density of the maximum at f, `b`, under each particle: `b x k`.

    A kernel estimate from the draws, with half their standard deviation as the bandwidth.
    """
    draws = landmarks.maxima
    square = (BANDWIDTH * draws.std(-1, keepdim=True)).square() + SMALLEST_BANDWIDTH**2
    log_kernel = -0.5 * ((f[:, None, None] - draws).square() / square + square.log())
    return log_kernel.logsumexp(-1)


def log_probability_above(landmarks: Landmarks, mean: Tensor, variance: Tensor) -> Tensor:
    """Log probability that N(mean, variance), `b x k`, is above all landmarks: `b x k`.

    The draws of their maximum are smoothed, and taken to be independent of the value.
    """
    draws = landmarks.maxima
    width = BANDWIDTH * draws.std(-1, keepdim=True)
    square = width.square() + SMALLEST_BANDWIDTH**2 + variance[..., None]
    log_above: Tensor = log_ndtr((mean[..., None] - draws) / square.sqrt())
    return log_above.logsumexp(-1) - math.log(draws.shape[-1])


def textbook_gains(
    conditioned: Conditioned, landmarks: Landmarks, at_q: Moments, cross: Tensor
) -> Tensor:
    """Estimates of the PES, MES and JES gains at q queries: `b x q x 3`, all >= 0.

    `cross` is the posterior covariance of queries and landmarks, `b x k x q x m`. Conditional
    distributions are matched by a Gaussian, and gains averaged over particles and draws.
    """
    s = landmarks.drawn.shape[-1]
    q = at_q.mean.shape[-1]
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None, None]
    drawn = landmarks.drawn  # b x k x s
    star_mean = landmarks.moments.mean.gather(2, drawn)[:, :, None]  # b x k x 1 x s
    star_variance = landmarks.moments.variance.gather(2, drawn)[:, :, None]
    c = cross.gather(3, drawn[:, :, None].expand(-1, -1, q, s))  # b x k x q x s
    mean, variance = at_q.mean[..., None], at_q.variance[..., None]
    value = landmarks.value[:, :, None]
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
