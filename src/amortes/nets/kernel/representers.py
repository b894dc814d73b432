"""Where the optimum may be: representer points, and Thompson draws of (x*, f*) among them.

A fixed low-discrepancy set, part global and part around the best observations at several scales of
the lengthscale, is scored by the particles' mixture; the most promising points stay as representer
points. Exact joint draws of f on them say how f* is distributed under each particle and how likely
each point is to be the optimum.

A few draws, each of one particle in proportion to its weight, are refined: the draw is interpolated
by its conditional mean, a kernel expansion on observations and representer points whose gradient
and Hessian, in warped coordinates, have closed forms, and a few Newton steps from the highest point
find its maximum. On the points alone x* would not be where the slope is zero, and what follows from
a zero slope there would be wrong: docs/log.md, 2026-11-16. Between the points an interpolation is
too smooth, and its maximum too low. So from three dimensions on the draw is continued, exactly, to
a few points about that maximum, and maximised again: docs/log.md, 2026-11-18.

All fixed: no random numbers, the same data give the same draws.

Shapes: b datasets, k particles, m representer points, t draws per particle, s refined draws, d
dimensions.

References: Hennig & Schuler, Entropy search for information-efficient global optimization, JMLR 13,
2012 (representer points); Hernandez-Lobato et al., Predictive entropy search, NeurIPS 2014 (draws
of the optimum).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from amortes import linalg
from amortes.errors import ConfigError, require_least
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.particles import normal_points
from amortes.prior.kernels import correlation, radial_curvature, radial_slope, square_distance
from amortes.prior.newton import Optimum, ascend, full_step, starting_points
from amortes.prior.warp import unwarp, warp

# Least share of the variance of the maximum that representer points leave unexplained.
UNEXPLAINED = 0.1
NEWTON_STEPS = 3
LONGEST_STEP = 0.3
# Up to so many dimensions representer points are dense enough to stand for all.
DENSE = 2
# Points about the maximum of a draw to which it is continued, and how far away in lengthscales.
NEARBY = 16
NEARBY_WIDTH = 0.3
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
class ThompsonDraws:
    """t draws of the maximum per particle on the representer points X, and s refined ones."""

    X: Tensor  # b x m x d
    representers: Representers
    argmax: Tensor  # b x k x t, index of the highest point
    maximum: Tensor  # b x k x t, raised by what refinement adds on average
    optima: Optimum  # x: b x s x d, f: b x s

    def likeliest(self, conditioned: Conditioned, count: int) -> Representers:
        """At most `count` points, those that are most often the highest."""
        found = self.representers
        likely = (conditioned.weights[..., None] * found.share).sum(1)
        index = likely.topk(min(count, likely.shape[-1]), dim=-1).indices  # b x count
        moments = conditioned.moments(_rows(self.X, index))
        share = found.share.gather(2, index[:, None].expand(-1, found.share.shape[1], -1))
        return Representers(
            moments=moments,
            covariance=conditioned.covariance(moments, moments),
            share=share / share.sum(-1, keepdim=True).clamp_min(1e-3),
            max_mean=found.max_mean,
            max_unexplained=found.max_unexplained,
        )


def thompson_draws(conditioned: Conditioned, config: RepresenterConfig) -> ThompsonDraws:
    """Representer points, joint draws of f on them, and refined maxima of a few."""
    X = representer_points(conditioned, config)
    moments = conditioned.moments(X)
    k = moments.mean.shape[1]
    covariance = conditioned.covariance(moments, moments)
    root = _root(conditioned, covariance)
    normals = normal_points(config.count, k * config.draws).to(X.dtype)
    normals = normals.reshape(k, config.draws, config.count)
    maximum, argmax = (moments.mean[..., None] + root @ normals.mT).max(dim=2)  # b x k x t
    share = torch.zeros_like(moments.mean).scatter_add(2, argmax, torch.ones_like(maximum))
    share = share / config.draws
    particle, draw = choose_draws(conditioned.particles.log_weights, config.optima, config.draws)
    rows = torch.arange(len(X))[:, None]
    paths = ThompsonPaths(
        conditioned=conditioned.take(particle, conditioned.particles.log_weights[rows, particle]),
        at=Moments(
            moments.mean[rows, particle],
            moments.variance[rows, particle],
            moments.whitened[rows, particle],
            moments.V[rows, particle],
        ),
        root=root[rows, particle],
        normals=normals[particle, draw],
    )
    optima = paths.maximise(X[rows, argmax[rows, particle, draw]])
    # Between representer points f is higher; by how much, is seen in the few draws.
    rise = optima.f - maximum[rows, particle, draw]
    maximum = maximum + rise.mean(1)[:, None, None]
    explained = (share[..., None, :] @ covariance @ share[..., None]).squeeze((-1, -2))
    variance = maximum.var(-1)
    return ThompsonDraws(
        X=X,
        representers=Representers(
            moments=moments,
            covariance=covariance,
            share=share,
            max_mean=maximum.mean(-1),
            max_unexplained=torch.maximum(variance - explained, UNEXPLAINED * variance),
        ),
        argmax=argmax,
        maximum=maximum,
        optima=optima,
    )


def choose_draws(log_weights: Tensor, count: int, draws: int) -> tuple[Tensor, Tensor]:
    """Particles, evenly by weight, and a draw of each: both `b x count`.

    Particles are those at the quantiles (i + 1/2) / count of the weights, and the i-th draw is
    taken. Not the first of each particle: every 64th point of a Sobol sequence is about the same.
    """
    cumulative = log_weights.exp().cumsum(-1)
    levels = (torch.arange(count, dtype=cumulative.dtype) + 0.5) / count
    levels = (levels * cumulative[:, -1:]).contiguous()
    particle = torch.searchsorted(cumulative, levels, right=True).clamp_max(
        log_weights.shape[1] - 1
    )
    return particle, (torch.arange(count) % draws).expand_as(particle)


@dataclass(frozen=True)
class ThompsonPaths:
    """s draws of f, each under a particle of its own, on m points of its own: m + L z."""

    conditioned: Conditioned  # with s particles, one for each draw
    at: Moments  # b x s x m
    root: Tensor  # b x s x m x m, the matrix L
    normals: Tensor  # b x s x m, the vector z

    @property
    def values(self) -> Tensor:
        """At the points: `b x s x m`."""
        return self.at.mean + (self.root @ self.normals[..., None]).squeeze(-1)

    @torch.no_grad()
    def maximise(self, start: Tensor) -> Optimum:
        """Maxima near `start`, `b x s x d`."""
        hyper = self.conditioned.particles.hyper
        u = start if hyper.warp is None else warp(start[:, :, None], hyper.warp).squeeze(2)
        u, f = self.climb(u)
        s, d = u.shape[1:]
        if d > DENSE:
            steps = NEARBY_WIDTH * normal_points(d, s * NEARBY).to(u.dtype).reshape(s, NEARBY, d)
            lengths = hyper.lengthscale[:, :, None]
            near = (u[:, :, None] + lengths.clamp_max(1.0) * steps).clamp(0.0, 1.0)
            near = torch.cat([u[:, :, None], near], dim=2)  # b x s x (1 + NEARBY) x d
            # The other way round: draw i has had point i of such a sequence.
            normals = normal_points(1 + NEARBY, s).flip(0).to(u.dtype).expand(len(u), -1, -1)
            paths = self.continued(near / lengths, normals)
            best = paths.values[..., -near.shape[2] :].argmax(-1)[..., None, None]
            u, f = paths.climb(near.gather(2, best.expand(-1, -1, 1, d)).squeeze(2))
        return Optimum(u if hyper.warp is None else unwarp(u[:, :, None], hyper.warp).squeeze(2), f)

    def continued(self, V: Tensor, normals: Tensor) -> "ThompsonPaths":
        """The same draws on more points, V `b x s x p x d` scaled, by normals `b x s x p`."""
        conditioned, at = self.conditioned, self.at
        new = conditioned.moments_at(V)
        along = torch.linalg.solve_triangular(
            self.root, conditioned.covariance(at, new), upper=False
        )  # b x s x m x p
        own = _root(conditioned, conditioned.covariance(new, new) - along.mT @ along)
        return ThompsonPaths(
            conditioned,
            Moments(
                torch.cat([at.mean, new.mean], dim=-1),
                torch.cat([at.variance, new.variance], dim=-1),
                torch.cat([at.whitened, new.whitened], dim=-1),
                torch.cat([at.V, new.V], dim=-2),
            ),
            torch.cat(
                [
                    torch.cat([self.root, torch.zeros_like(along)], dim=-1),
                    torch.cat([along.mT, own], dim=-1),
                ],
                dim=-2,
            ),
            torch.cat([self.normals, normals], dim=-1),
        )

    def climb(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Newton steps from u, `b x s x d` in warped coordinates, on the interpolated draws.

        On the points a draw is m + L z, so its interpolation is m(x) + cov(x, points) L^-T z.
        """
        conditioned, at = self.conditioned, self.at
        z = self.normals[..., None]
        beta: Tensor = torch.linalg.solve_triangular(self.root.mT, z, upper=True)
        by_data = (conditioned.whitener.mT @ (at.whitened @ beta)).squeeze(-1)
        weights = torch.cat([conditioned.coefficients - by_data, beta.squeeze(-1)], dim=-1)
        centres = torch.cat([conditioned.V, at.V], dim=2)  # b x s x c x d
        hyper, prior = conditioned.particles.hyper, conditioned.prior
        kernel = prior.kernel
        rough = None if hyper.roughness is None else hyper.roughness[..., None]
        per_length = hyper.lengthscale.reciprocal()
        constant = prior.mean.loc + prior.mean.scale**2 * weights.sum(-1)
        weights = hyper.output_variance[..., None] * weights  # b x s x c

        def evaluate(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            v = (u * per_length)[:, :, None]  # b x s x 1 x d
            r2 = square_distance(centres, v).squeeze(-1)
            slope = weights * radial_slope(kernel, r2, rough)
            curvature = weights * radial_curvature(kernel, r2, rough)
            away = (centres - v) * per_length[:, :, None]  # b x s x c x d
            f = constant + (weights * correlation(kernel, r2, rough)).sum(-1)
            gradient = (slope[..., None, :] @ away).squeeze(-2)
            bend = torch.diag_embed(per_length.square() * slope.sum(-1, keepdim=True))
            return f, gradient, (away * curvature[..., None]).mT @ away - bend

        return ascend(evaluate, u, full_step, NEWTON_STEPS, LONGEST_STEP)


def _root(conditioned: Conditioned, covariance: Tensor) -> Tensor:
    """Cholesky factors of covariances, `b x k x m x m`, with a little jitter."""
    jitter = JITTER * conditioned.prior_variance[..., None].expand(covariance.shape[:-1])
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
    return _rows(candidates, keep)


def _candidates(conditioned: Conditioned, config: RepresenterConfig) -> Tensor:
    """Global points, the best observed points, and points around these: `b x c x d`."""
    b, _, d = conditioned.X.shape
    n = conditioned.num_observed
    fitted = (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)
    order = fitted.argsort(dim=-1, descending=True)
    top = order[:, torch.arange(config.num_centres) % n]  # repeats when there are few points
    centres = _rows(conditioned.X[:, :n], top)
    width = conditioned.typical_lengthscale
    offsets = _offsets(d, config.num_centres, config.per_centre).to(centres.dtype)
    around = (centres[:, :, None] + width[:, None, None] * offsets).clamp(0.0, 1.0).flatten(1, 2)
    everywhere = starting_points(d, config.num_global).to(centres.dtype).expand(b, -1, -1)
    return torch.cat([centres, around, everywhere], dim=1)


def _rows(X: Tensor, index: Tensor) -> Tensor:
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
