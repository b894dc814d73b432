"""A few draws of the optimum (x*, f*) from the posterior of one dataset.

Each belongs to a particle, in proportion to its weight. The draw of f on the landmarks is
interpolated by its conditional mean, a kernel expansion on observations and landmarks whose
gradient and Hessian, in warped coordinates, have closed forms; a few Newton steps from the best
landmark find its maximum.
On the landmarks alone x* would not be where the slope is zero, and what follows from a zero slope
there would be wrong: docs/log.md, 2026-11-16.

All fixed: no random numbers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.prior.kernels import correlation, radial_curvature, radial_slope, square_distance
from amortes.prior.newton import Optimum, ascend, full_step
from amortes.prior.warp import unwarp, warp

STEPS = 3
MAX_STEP = 0.3


@dataclass(frozen=True)
class Draws:
    """t joint draws of f on m landmarks, mean + root normals, for each of k particles."""

    root: Tensor  # b x k x m x m
    normals: Tensor  # k x t x m
    place: Tensor  # b x k x t, index of the highest landmark


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


@torch.no_grad()
def refine(
    conditioned: Conditioned,
    X: Tensor,
    at: Moments,
    draws: Draws,
    particle: Tensor,
    draw: Tensor,
) -> Optimum:
    """Maxima of draws on landmarks X, `b x m x d`; `particle` and `draw`, `b x s`, say which."""
    rows = torch.arange(len(particle))[:, None]
    # f on the landmarks is m + L z, so its interpolation is m(x) + cov(x, landmarks) L^-T z.
    root, normals = draws.root[rows, particle], draws.normals[particle, draw]
    beta = torch.linalg.solve_triangular(root.mT, normals[..., None], upper=True)  # b x s x m x 1
    by_data = at.whitened[rows, particle] @ beta
    by_data = (conditioned.whitener[rows, particle].mT @ by_data).squeeze(-1)
    weights = torch.cat([conditioned.coefficients[rows, particle] - by_data, beta[..., 0]], dim=-1)
    centres = torch.cat([conditioned.V, at.V], dim=2)[rows, particle]  # b x s x c x d
    hyper, kernel = conditioned.particles.hyper[rows, particle], conditioned.prior.kernel
    rough = None if hyper.roughness is None else hyper.roughness[..., None]
    per_length = hyper.lengthscale.reciprocal()
    constant = conditioned.prior.mean.loc + conditioned.prior.mean.scale**2 * weights.sum(-1)
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

    start = X[rows, draws.place[rows, particle, draw]]
    if hyper.warp is None:
        return Optimum(*ascend(evaluate, start, full_step, STEPS, MAX_STEP))
    start = warp(start[:, :, None], hyper.warp).squeeze(2)
    u, f = ascend(evaluate, start, full_step, STEPS, MAX_STEP)
    return Optimum(unwarp(u[:, :, None], hyper.warp).squeeze(2), f)
