"""Representer points: where the optimum may be, and how high.

A fixed low-discrepancy set, part global and part around the best observations at several scales of
the lengthscale, is scored by the particles' mixture; the most promising points stay as representer
points. Exact joint draws of f on them say how f* is distributed under each particle and how likely
each point is to be the optimum.

All fixed: no random numbers, the same data give the same draws.

Shapes: b datasets, k particles, m representer points, t draws per particle, d dimensions.

Reference: Hennig & Schuler, Entropy search for information-efficient global optimization, JMLR 13,
2012.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from amortes import linalg
from amortes.errors import ConfigError, require_least
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hyperparameters.particles import normal_points
from amortes.nets.kernel.numpy_kernels import QUIET
from amortes.prior.newton import starting_points

# Least share of the variance of the maximum that representer points leave unexplained.
UNEXPLAINED = 0.1
# Added to covariances, relative to the prior variance, for the sake of their factors.
JITTER = 1e-6


@dataclass(frozen=True, kw_only=True)
class RepresenterConfig:
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
class Representers:
    """Points that may be the maximum, the posterior of f there, and of its maximum."""

    moments: Moments  # b x k x m
    covariance: Tensor  # b x k x m x m
    share: Tensor  # b x k x m, probability that this point is the highest
    max_mean: Tensor  # b x k, mean of the maximum
    max_unexplained: Tensor  # b x k, variance of the maximum that sum_m share_m f(m) does not have


@dataclass(frozen=True)
class JointDraws:
    """t joint draws of f per particle at m representer points X."""

    X: Tensor  # b x m x d
    representers: Representers
    root: Tensor  # b x k x m x m, factors of the covariance
    normals: Tensor  # k x t x m, the draws are mean + root normals
    argmax: Tensor  # b x k x t, index of the highest point
    maximum: Tensor  # b x k x t


@QUIET
@torch.no_grad()
def joint_draws(conditioned: Conditioned, config: RepresenterConfig) -> JointDraws:
    """Representer points, and what joint draws of f on them say about its maximum."""
    X = representer_points(conditioned, config)
    moments = conditioned.moments(X)
    k = moments.mean.shape[1]
    covariance = conditioned.covariance(moments, moments)
    root = root_of(conditioned.prior_variance, covariance)
    normals = normal_points(config.count, k * config.draws).to(X.dtype)
    normals = normals.reshape(k, config.draws, config.count)
    maximum, argmax = (moments.mean[..., None] + root @ normals.mT).max(dim=2)  # b x k x t
    share = torch.zeros_like(moments.mean).scatter_add(2, argmax, torch.ones_like(maximum))
    found = representers_of(moments, covariance, share / config.draws, maximum)
    return JointDraws(X, found, root, normals, argmax, maximum)


def representers_of(
    moments: Moments, covariance: Tensor, share: Tensor, maximum: Tensor
) -> Representers:
    """With what draws of the maximum, `b x k x t`, say of it."""
    explained = (share[..., None, :] @ covariance @ share[..., None]).squeeze((-1, -2))
    variance = maximum.var(-1)
    unexplained = torch.maximum(variance - explained, UNEXPLAINED * variance)
    return Representers(moments, covariance, share, maximum.mean(-1), unexplained)


def root_of(prior_variance: Tensor, covariance: Tensor) -> Tensor:
    """Cholesky factors of covariances, `b x k x m x m`, with a little jitter."""
    jitter = JITTER * prior_variance[..., None].expand(covariance.shape[:-1])
    return linalg.cholesky(covariance + torch.diag_embed(jitter))


def representer_points(conditioned: Conditioned, config: RepresenterConfig) -> Tensor:
    """The most promising of the candidates: `b x m x d`."""
    candidates = _candidates(conditioned, config)
    mean, sd = conditioned.rough_moments(candidates)
    # Half by the odds of beating the best mean, half by an optimistic bound; each point once.
    again = _repeated(candidates)
    odds = ((mean - mean.amax(-1, keepdim=True)) / sd).where(~again, -torch.inf)
    keep = odds.topk(config.count // 2, dim=-1).indices
    bound = (mean + 2.0 * sd).where(~again, -torch.inf).scatter(1, keep, -torch.inf)
    keep = torch.cat([keep, bound.topk(config.count - config.count // 2, dim=-1).indices], dim=1)
    return rows_of(candidates, keep)


def _candidates(conditioned: Conditioned, config: RepresenterConfig) -> Tensor:
    """Global points, the best observed points, and points around these: `b x c x d`."""
    b, _, d = conditioned.X.shape
    n = conditioned.num_observed
    fitted = (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)
    order = fitted.argsort(dim=-1, descending=True)
    top = order[:, torch.arange(config.num_centres) % n]  # repeats when there are few points
    centres = rows_of(conditioned.X[:, :n], top)
    width = conditioned.typical_lengthscale
    offsets = _offsets(d, config.num_centres, config.per_centre).to(centres.dtype)
    around = (centres[:, :, None] + width[:, None, None] * offsets).clamp(0.0, 1.0).flatten(1, 2)
    everywhere = starting_points(d, config.num_global).to(centres.dtype).expand(b, -1, -1)
    return torch.cat([centres, around, everywhere], dim=1)


def rows_of(X: Tensor, index: Tensor) -> Tensor:
    """Points of X, `b x c x d`, with indices `b x m`: `b x m x d`."""
    return X.gather(1, index[..., None].expand(-1, -1, X.shape[-1]))


def _repeated(X: Tensor) -> Tensor:
    """Which points, `b x c x d`, equal an earlier one (many are clipped to a corner): `b x c`."""
    direction = normal_points(X.shape[-1], 1)[0].to(X.dtype) + math.pi
    # A sum, not a product of matrices: that may round equal rows differently.
    key, order = (X * direction).sum(-1).sort(dim=-1, stable=True)
    same = torch.nn.functional.pad(key.diff(dim=-1) == 0, (1, 0))
    return torch.zeros_like(same).scatter(1, order, same)


@lru_cache(maxsize=64)
def _offsets(d: int, centres: int, each: int) -> Tensor:
    """Steps around a centre in lengthscales, `centres x each x d`, from small to large."""
    scale = torch.logspace(-1.7, -0.1, each, dtype=torch.float64)[:, None]
    return normal_points(d, centres * each).reshape(centres, each, d) * scale
