"""Thompson draws of the optimum (x*, f*): maxima of draws of f.

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

Reference: Hernandez-Lobato et al., Predictive entropy search, NeurIPS 2014.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel import numpy_kernels
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hyperparameters.particles import normal_points
from amortes.nets.kernel.numpy_kernels import QUIET, Array
from amortes.nets.kernel.optimum.representers import (
    RepresenterConfig,
    Representers,
    joint_draws,
    representers_of,
    root_of,
    rows_of,
)
from amortes.prior.newton import Optimum, ascend, full_step
from amortes.prior.warp import unwarp, warp

NEWTON_STEPS = 3
LONGEST_STEP = 0.3
# Up to so many dimensions representer points are dense enough to stand for all.
DENSE = 2
# Points about the maximum of a draw to which it is continued, and how far away in lengthscales.
NEARBY = 16
NEARBY_WIDTH = 0.3


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
        moments = conditioned.moments(rows_of(self.X, index))
        share = found.share.gather(2, index[:, None].expand(-1, found.share.shape[1], -1))
        return Representers(
            moments=moments,
            covariance=conditioned.covariance(moments, moments),
            share=share / share.sum(-1, keepdim=True).clamp_min(1e-3),
            max_mean=found.max_mean,
            max_unexplained=found.max_unexplained,
        )


@QUIET
@torch.no_grad()
def thompson_draws(conditioned: Conditioned, config: RepresenterConfig) -> ThompsonDraws:
    """Joint draws of f on representer points, and refined maxima of a few."""
    joint = joint_draws(conditioned, config)
    X, found = joint.X, joint.representers
    particle, draw = choose_draws(conditioned.particles.log_weights, config.optima, config.draws)
    rows = torch.arange(len(X))[:, None]
    normals = joint.normals[particle, draw]
    paths = ThompsonPaths(conditioned, found.moments, joint.root, particle, normals)
    optima = paths.maximise(X[rows, joint.argmax[rows, particle, draw]])
    # Between representer points f is higher; by how much, is seen in the few draws.
    rise = optima.f - joint.maximum[rows, particle, draw]
    maximum = joint.maximum + rise.mean(1)[:, None, None]
    found = representers_of(found.moments, found.covariance, found.share, maximum)
    return ThompsonDraws(X, found, joint.argmax, maximum, optima)


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


class ThompsonPaths:
    """s draws of f, each under a particle of its own, on m points: m(points) + L z.

    Interpolated they are m(x) + cov(x, points) L^-T z.
    """

    def __init__(
        self, conditioned: Conditioned, at: Moments, root: Tensor, particle: Tensor, normals: Tensor
    ) -> None:
        """Points `b x k x m` and factors L of all particles, `particle` `b x s`, z `b x s x m`."""
        self.conditioned, self.at = conditioned, at
        self.particle, self.normals = particle.numpy(), normals.numpy()
        self.rows = np.arange(len(self.particle))[:, None]
        self.hyper = conditioned.particles.hyper[torch.from_numpy(self.rows), particle]
        # Runs of draws of the same particle: not a matrix for each draw, for these are large.
        self.runs = []
        for i, each in enumerate(self.particle):
            ends = [0, *(np.flatnonzero(np.diff(each)) + 1), len(each)]
            self.runs += [(i, each[a], slice(a, b)) for a, b in itertools.pairwise(ends)]
        self.inverse = linalg.inverse_triangular(root).numpy()
        self.V = self._own(torch.cat([conditioned.V, at.V], dim=2))  # b x s x (n + m) x d
        self.coefficients = self._own(conditioned.coefficients)  # b x s x n

    def maximise(self, start: Tensor) -> Optimum:
        """Maxima near `start`, `b x s x d`."""
        warped = self.hyper.warp
        u = start if warped is None else warp(start[:, :, None], warped).squeeze(2)
        u, f = self.climb(u)
        s, d = u.shape[1:]
        if d > DENSE:
            steps = NEARBY_WIDTH * normal_points(d, s * NEARBY).to(u.dtype).reshape(s, NEARBY, d)
            lengths = self.hyper.lengthscale[:, :, None]
            near = (u[:, :, None] + lengths.clamp_max(1.0) * steps).clamp(0.0, 1.0)
            near = torch.cat([u[:, :, None], near], dim=2)  # b x s x (1 + NEARBY) x d
            # The other way round: draw i has had point i of such a sequence.
            normals = normal_points(1 + NEARBY, s).flip(0).to(u.dtype).expand(len(u), -1, -1)
            more = self.continued((near / lengths).numpy(), normals.numpy())
            best = torch.from_numpy(more.values.argmax(-1))[..., None, None]
            u, f = self.climb(near.gather(2, best.expand(-1, -1, 1, d)).squeeze(2), more)
        return Optimum(u if warped is None else unwarp(u[:, :, None], warped).squeeze(2), f)

    def continued(self, V: Array, normals: Array) -> "Continued":
        """The draws on more points, V `b x s x p x d` scaled, by normals `b x s x p`."""
        conditioned, n = self.conditioned, self.coefficients.shape[-1]
        k_known, k_own = self._kernel(V, self.V), self._kernel(V, V)
        whitened = self._times(k_known[..., :n], conditioned.whitener.numpy().swapaxes(-1, -2))
        mean = (
            conditioned.prior.mean.loc + (k_known[..., :n] @ self.coefficients[..., None])[..., 0]
        )
        left = k_known[..., n:] - self._times(whitened, self.at.whitened.numpy())
        along = self._times(left, self.inverse.swapaxes(-1, -2))  # b x s x p x m
        k_own -= whitened @ whitened.swapaxes(-1, -2) + along @ along.swapaxes(-1, -2)
        variance = self._own(conditioned.prior_variance)
        own = root_of(torch.from_numpy(variance), torch.from_numpy(k_own)).numpy()
        values = mean + (along @ self.normals[..., None] + own @ normals[..., None])[..., 0]
        return Continued(V, whitened, along, own, normals, values)

    def climb(self, u: Tensor, more: "Continued | None" = None) -> tuple[Tensor, Tensor]:
        """Newton steps from u, `b x s x d` in warped coordinates, on the interpolated draws."""
        conditioned, hyper, z = self.conditioned, self.hyper, self.normals[:, :, None]
        centres, new = self.V, np.zeros_like(self.coefficients[:, :, None])
        weights = []
        if more is not None:
            last = np.linalg.solve(more.own.swapaxes(-1, -2), more.normals[..., None])
            last = last.swapaxes(-1, -2)  # b x s x 1 x p
            z, new = z - last @ more.along, last @ more.whitened
            weights, centres = [last], np.concatenate([centres, more.V], axis=2)
        beta = self._times(z, self.inverse)  # b x s x 1 x m
        new = new + self._times(beta, self.at.whitened.numpy().swapaxes(-1, -2))
        by_data = self._times(new, conditioned.whitener.numpy())
        weights = [self.coefficients[:, :, None] - by_data, beta, *weights]
        w = np.concatenate(weights, axis=-1)[:, :, 0]  # b x s x c
        prior, kernel = conditioned.prior, conditioned.prior.kernel
        constant = prior.mean.loc + prior.mean.scale**2 * w.sum(-1)
        w *= hyper.output_variance.numpy()[..., None]
        rough = 0.0 if hyper.roughness is None else hyper.roughness.numpy()[..., None]
        per_length = 1.0 / hyper.lengthscale.numpy()
        centres = np.ascontiguousarray(centres.swapaxes(-1, -2))  # b x s x d x c
        product, i = per_length[..., :, None] * per_length[..., None, :], np.arange(u.shape[-1])

        def evaluate(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            away = centres - (u.numpy() * per_length)[..., None]
            r2 = np.square(away).sum(-2)
            value, slope, _ = numpy_kernels.value_and_slopes(kernel, r2, rough)
            curvature = w * numpy_kernels.radial_curvature(kernel, r2, rough)
            f, slope = constant + (w * value).sum(-1), w * slope
            gradient = (away @ slope[..., None])[..., 0] * per_length
            H = (away * curvature[..., None, :]) @ away.swapaxes(-1, -2)
            H[..., i, i] -= slope.sum(-1, keepdims=True)
            H *= product
            return torch.from_numpy(f), torch.from_numpy(gradient), torch.from_numpy(H)

        return ascend(evaluate, u, full_step, NEWTON_STEPS, LONGEST_STEP)

    def _own(self, of_all: Tensor) -> Array:
        """What belongs to the particle of each draw, `b x k x ...`: `b x s x ...`."""
        own: Array = of_all.numpy()[self.rows, self.particle]
        return own

    def _times(self, A: Array, B: Array) -> Array:
        """A, `b x s x p x r`, times the matrices of particles, `b x k x r x c`: `b x s x p x c`."""
        result = np.empty((*A.shape[:3], B.shape[-1]))
        for i, p, run in self.runs:
            A_run, result_run = A[i, run], result[i, run]
            np.matmul(
                A_run.reshape(-1, A.shape[-1]), B[i, p], out=result_run.reshape(-1, B.shape[-1])
            )
        return result

    def _kernel(self, V1: Array, V2: Array) -> Array:
        """Prior covariances of scaled points, `b x s x n1 x d` and `b x s x n2 x d`."""
        hyper, prior = self.hyper, self.conditioned.prior
        rough = 0.0 if hyper.roughness is None else hyper.roughness.numpy()[..., None, None]
        K = numpy_kernels.correlation(prior.kernel, numpy_kernels.square_distance(V1, V2), rough)
        K *= hyper.output_variance.numpy()[..., None, None]
        K += prior.mean.scale**2
        return K


class Continued(NamedTuple):
    """Draws on p more points: m(V) + C z + L' z'."""

    V: Array  # b x s x p x d, scaled
    whitened: Array  # b x s x p x n
    along: Array  # b x s x p x m, the matrix C
    own: Array  # b x s x p x p, the matrix L'
    normals: Array  # b x s x p, the vector z'
    values: Array  # b x s x p
