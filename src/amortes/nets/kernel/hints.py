"""What knowing the optimum says about f(x), in closed form, under each particle.

A maximum at x* means f(x) <= f(x*) everywhere, and a zero gradient in every coordinate in which x*
is not on the boundary. Both are used exactly where a Gaussian allows it:

    x* known   condition on the zero gradient, which is linear in f;
    both       condition on f(x*) = f* too, then truncate f(x) at f*;
    f* only    truncate f(x) at f*; draws on the landmarks give the density of the maximum;
    x* only    moments of f(x) given f(x) <= f(x*), a truncated difference of two Gaussians.

The evidence says how well a particle explains the hint: the density of the maximum at f*; the
probability that f(x*) is above all landmarks; or the density of f(x*) at f* and the probability
that the landmarks stay below. (The density of the zero gradient would belong there, too, but
misleads: docs/log.md, 2026-11-15. The correction may look at it.) Apart from the gradient these are
the textbook approximations of PES, MES and JES (Wang & Jegelka 2017; Hvarfner et al. 2022); the
learned correction starts from them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.base import Hint
from amortes.nets.distributions.normal import truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.landmarks import (
    Landmarks,
    log_density_of_maximum,
    log_probability_above,
)
from amortes.nets.kernel.particles import radial_slope

# A coordinate of x* this close to a face counts as on it: its derivative need not vanish.
BOUNDARY = 1e-6
# Slack of the zero-gradient observation, relative to the prior variance of the derivative.
GRADIENT_SLACK = 1e-6


@dataclass(frozen=True)
class Start:
    """Gaussian approximation of f(x) given the hint, and what the correction may look at."""

    mean: Tensor  # b x k x q
    sd: Tensor  # b x k x q
    log_evidence: Tensor  # b x k x q
    truncation: Tensor  # b x k x q: (bound - mean) / sd before truncation; 0 without a hint
    star_mean: Tensor  # b x k x 1: posterior mean of f(x*), after the zero gradient
    star_sd: Tensor  # b x k x 1
    correlation: Tensor  # b x k x q: posterior correlation of f(x) and f(x*)
    explained: Tensor  # b x k x q: log of the variance ratio due to the zero gradient
    log_flat: Tensor  # b x k x 1: log density of the zero gradient


def start(
    conditioned: Conditioned,
    Xq: Tensor,
    at_q: Moments,
    hint: Hint | None,
    landmarks: Landmarks | None = None,
) -> Start:
    """Closed-form start at Xq, `b x q x d`, whose posterior moments are `at_q`.

    Landmarks are needed with any hint.
    """
    zero = torch.zeros_like(at_q.mean)
    column = zero[..., :1]
    if hint is None or (hint.x is None and hint.f is None):
        return Start(at_q.mean, at_q.sd, zero, zero, column, column, zero, zero, column)
    assert landmarks is not None
    if hint.x is None:
        assert hint.f is not None
        mean, sd, bound = _truncate(at_q.mean, at_q.sd, hint.f[:, None, None])
        evidence = log_density_of_maximum(landmarks, hint.f)[..., None].expand_as(mean)
        return Start(mean, sd, evidence, bound, column, column, zero, zero, column)

    mean, variance, cross, star_mean, star_variance, log_flat = _flat_at(
        conditioned, Xq, at_q, hint.x
    )
    explained = (variance / at_q.variance).log()
    correlation = cross / (variance * star_variance).sqrt()
    correlation = correlation.clamp(-1.0, 1.0)
    star_sd = star_variance.sqrt()
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
    at_star = (star_mean.squeeze(-1), star_variance.squeeze(-1))
    if hint.f is not None:
        f = hint.f[:, None, None]
        surprise = (f - star_mean) / star_sd
        known = hint.f[:, None].expand_as(at_star[0])
        below = log_probability_above(landmarks, known, torch.zeros_like(known))
        evidence = below[..., None] - 0.5 * surprise.square() - star_sd.log()
        mean = mean + correlation * variance.sqrt() * surprise
        sd = (variance * (1.0 - correlation.square())).clamp_min(floor).sqrt()
        mean, sd, bound = _truncate(mean, sd, f)
    else:
        evidence = log_probability_above(landmarks, *at_star)[..., None]
        # Given g = f(x*) - f(x) >= 0, f(x) moves along its regression on g.
        gap_variance = (variance + star_variance - 2.0 * cross).clamp_min(floor)
        gap_sd, gap_mean = gap_variance.sqrt(), star_mean - mean
        zeros = torch.zeros_like(gap_mean)
        negative_mean, negative_variance = truncated_moments(-gap_mean, gap_sd, zeros)
        slope = (cross - variance) / gap_variance
        mean = mean - slope * (negative_mean + gap_mean)
        removed = slope.square() * (gap_variance - negative_variance)
        sd = (variance - removed).clamp_min(floor).sqrt()
        bound = gap_mean / gap_sd
    return Start(
        mean,
        sd,
        evidence.expand_as(mean),
        bound,
        star_mean,
        star_sd,
        correlation,
        explained,
        log_flat,
    )


def _truncate(mean: Tensor, sd: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and sd of N(mean, sd^2) below `upper`, and the standardised bound."""
    bound = (upper - mean) / sd
    new_mean, variance = truncated_moments(mean, sd, upper.expand_as(mean))
    return new_mean, variance.sqrt(), bound


def _flat_at(
    conditioned: Conditioned, Xq: Tensor, at_q: Moments, x_star: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Condition on a zero gradient at x*, `b x d`, in its interior coordinates.

    Returns mean and variance of f(x) and its covariance with f(x*), `b x k x q`; mean and variance
    of f(x*) and the log density of the zero gradient, `b x k x 1`.
    """
    hyper = conditioned.particles.hyper
    at_star = conditioned.moments(x_star[:, None])
    cross = conditioned.covariance(Xq, at_q, x_star[:, None], at_star).squeeze(-1)  # b x k x q

    data_gradient = conditioned.gradient_kernel(conditioned.X, x_star)  # b x k x n x d
    whitened = conditioned.whitener @ data_gradient
    mean_gradient = (conditioned.coefficients[..., None, :] @ data_gradient).squeeze(
        -2
    )  # b x k x d
    unit = radial_slope(conditioned.prior.kernel, torch.zeros_like(hyper.output_variance))
    prior_gradient = (hyper.output_variance * unit)[..., None] / hyper.lengthscale.square()
    S = torch.diag_embed(prior_gradient * (1.0 + GRADIENT_SLACK)) - whitened.mT @ whitened
    query_gradient = conditioned.gradient_kernel(Xq, x_star) - at_q.whitened.mT @ whitened
    star_gradient = -(at_star.whitened.mT @ whitened)  # b x k x 1 x d; k(x*, grad x*) = 0

    # Coordinates on the boundary drop out: identity block, no covariance, no residual.
    interior = ((x_star > BOUNDARY) & (x_star < 1.0 - BOUNDARY))[:, None].to(S.dtype)  # b x 1 x d
    S = S * interior[..., :, None] * interior[..., None, :] + torch.diag_embed(
        (1.0 - interior).expand_as(prior_gradient)
    )
    L = linalg.cholesky(S)

    def whiten(rows: Tensor) -> Tensor:  # b x k x m x d -> b x k x d x m
        columns = (rows * interior[..., None, :]).mT
        solved: Tensor = torch.linalg.solve_triangular(L, columns, upper=False)
        return solved

    residual = whiten(-mean_gradient[..., None, :])  # b x k x d x 1
    at_queries, at_optimum = whiten(query_gradient), whiten(star_gradient)
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
    mean = at_q.mean + (at_queries * residual).sum(-2)
    variance = (at_q.variance - at_queries.square().sum(-2)).clamp_min(floor)
    star_mean = at_star.mean + (at_optimum * residual).sum(-2)
    star_variance = (at_star.variance - at_optimum.square().sum(-2)).clamp_min(floor)
    cross = cross - (at_queries * at_optimum).sum(-2)
    log_density = -0.5 * residual.square().sum((-1, -2)) - L.diagonal(dim1=-2, dim2=-1).log().sum(
        -1
    )
    return mean, variance, cross, star_mean, star_variance, log_density[..., None]
