"""Where the optimum may be: candidate optima, and draws of (x*, f*) among them.

A fixed low-discrepancy set, part global and part around the best observations at several scales of
the lengthscale, is scored by the particles' mixture; the most promising points stay as landmarks.
Exact joint draws of f on them say how f* is distributed under each particle and how likely each
landmark is to be the optimum.

All fixed: no random numbers, the same data give the same landmarks.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from amortes import linalg
from amortes.errors import ConfigError, require_least
from amortes.nets.distributions.normal import log_normal
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.optima import Draws, choose_draws, refine
from amortes.nets.kernel.particles import normal_points
from amortes.nets.kernel.rivals import Rivals
from amortes.prior.newton import Optimum, starting_points

# Chosen by the gain in log-likelihood from hints: docs/log.md, 2026-11-15.
BANDWIDTH = 0.5
SMALLEST_BANDWIDTH = 0.02

# Least share of the variance of the maximum that values at landmarks leave unexplained.
UNEXPLAINED = 0.1


@dataclass(frozen=True, kw_only=True)
class LandmarkConfig:
    """How many candidates are looked at, and how many stay."""

    count: int = 64
    num_global: int = 128
    num_centres: int = 8
    per_centre: int = 24
    draws: int = 64  # of the maximum, per particle
    optima: int = 32  # draws in all that are refined

    def __post_init__(self) -> None:
        require_least(self, num_global=1, num_centres=1, per_centre=1, draws=2, optima=1)
        candidates = self.num_global + self.num_centres * (1 + self.per_centre)
        if not 2 <= self.count <= candidates:
            raise ConfigError(
                f"count: must be in 2..{candidates}, the number of candidates, not {self.count}."
            )


@dataclass(frozen=True)
class Landmarks(Rivals):
    """m candidate optima of each of b datasets, and t draws of the optimum per particle."""

    maximum: Tensor  # b x k x t, the maximum of f in each draw
    draws: Draws
    optima: Optimum  # x: b x s x d, f: b x s; of a few draws, evenly by weight of their particles

    def at_place(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance at landmarks with indices `b x k x ...`: the same shape."""
        flat = place.flatten(2)
        moments = self.moments.mean.gather(2, flat), self.moments.variance.gather(2, flat)
        return moments[0].reshape(place.shape), moments[1].reshape(place.shape)


def find_landmarks(conditioned: Conditioned, config: LandmarkConfig) -> Landmarks:
    """The most promising of the candidates, and joint draws of f on them."""
    b, _, d = conditioned.X.shape
    candidates = _candidates(conditioned, config)
    mean, sd = conditioned.rough_moments(candidates)
    # Half by the odds of beating the best mean, half by an optimistic bound; each point once.
    again = _repeated(candidates)
    odds = ((mean - mean.amax(-1, keepdim=True)) / sd).where(~again, -torch.inf)
    keep = odds.topk(config.count // 2, dim=-1).indices
    bound = (mean + 2.0 * sd).where(~again, -torch.inf).scatter(1, keep, -torch.inf)
    keep = torch.cat([keep, bound.topk(config.count - config.count // 2, dim=-1).indices], dim=1)
    X = candidates.gather(1, keep[..., None].expand(-1, -1, d))
    moments = conditioned.moments(X)
    k = moments.mean.shape[1]
    covariance = conditioned.covariance(moments, moments)
    jitter = 1e-6 * conditioned.prior_variance[..., None].expand_as(moments.mean)
    L = linalg.cholesky(covariance + torch.diag_embed(jitter))
    normals = normal_points(config.count, k * config.draws).to(X.dtype)
    normals = normals.reshape(k, config.draws, config.count)
    maximum, place = (moments.mean[..., None] + L @ normals.mT).max(dim=2)  # b x k x t
    share = torch.zeros_like(moments.mean).scatter_add(2, place, torch.ones_like(maximum))
    share = share / config.draws
    draws = Draws(L, normals, place)
    particle, draw = choose_draws(conditioned.particles.log_weights, config.optima, config.draws)
    optima = refine(conditioned, X, moments, draws, particle, draw)
    # Between landmarks f is higher; by how much, is seen in the few draws.
    rise = optima.f - maximum[torch.arange(b)[:, None], particle, draw]
    maximum = maximum + rise.mean(1)[:, None, None]
    return Landmarks(
        X=X,
        moments=moments,
        covariance=covariance,
        share=share,
        highest=maximum.mean(-1),
        unexplained=_unexplained(maximum, covariance, share),
        maximum=maximum,
        draws=draws,
        optima=optima,
    )


def _unexplained(maximum: Tensor, covariance: Tensor, share: Tensor) -> Tensor:
    """Variance of the maximum, `b x k x t` draws, not due to the average landmark: `b x k`."""
    explained = (share[..., None, :] @ covariance @ share[..., None]).squeeze((-1, -2))
    variance = maximum.var(-1)
    return torch.maximum(variance - explained, UNEXPLAINED * variance)


def _repeated(X: Tensor) -> Tensor:
    """Which points, `b x c x d`, equal an earlier one (many are clipped to a corner): `b x c`."""
    direction = normal_points(X.shape[-1], 1)[0].to(X.dtype) + math.pi
    # A sum, not a product of matrices: that may round equal rows differently.
    key, order = (X * direction).sum(-1).sort(dim=-1, stable=True)
    same = torch.nn.functional.pad(key.diff(dim=-1) == 0, (1, 0))
    return torch.zeros_like(same).scatter(1, order, same)


def log_kernel_of_maximum(landmarks: Landmarks, f: Tensor) -> Tensor:
    """How close each draw of the maximum is to f, `b x s`: `b x k x s x t`.

    The mean of their exponentials estimates the density of the maximum at f under each particle;
    the bandwidth is half the standard deviation of the draws.
    """
    draws = landmarks.maximum[:, :, None]
    square = (BANDWIDTH * draws.std(-1, keepdim=True)).square() + SMALLEST_BANDWIDTH**2
    return log_normal((f[:, None, :, None] - draws) / square.sqrt()) - 0.5 * square.log()


def _candidates(conditioned: Conditioned, config: LandmarkConfig) -> Tensor:
    """Global points, the best observed points, and points around these: `b x c x d`."""
    b, _, d = conditioned.X.shape
    n = conditioned.num_observed
    fitted = (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)
    order = fitted.argsort(dim=-1, descending=True)
    top = order[:, torch.arange(config.num_centres) % n]  # repeats when there are few points
    centres = conditioned.X[:, :n].gather(1, top[..., None].expand(-1, -1, d))
    width = conditioned.typical_lengthscale
    offsets = _offsets(d, config.num_centres, config.per_centre).to(centres.dtype)
    around = (centres[:, :, None] + width[:, None, None] * offsets).clamp(0.0, 1.0).flatten(1, 2)
    everywhere = starting_points(d, config.num_global).to(centres.dtype).expand(b, -1, -1)
    return torch.cat([centres, around, everywhere], dim=1)


@lru_cache(maxsize=64)
def _offsets(d: int, centres: int, each: int) -> Tensor:
    """Steps around a centre in lengthscales, `centres x each x d`, from small to large."""
    scale = torch.logspace(-1.7, -0.1, each, dtype=torch.float64)[:, None]
    return normal_points(d, centres * each).reshape(centres, each, d) * scale
