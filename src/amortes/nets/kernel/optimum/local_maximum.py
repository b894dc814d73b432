"""The posterior of f given that x* is a local maximum, and perhaps the value of f there.

In every coordinate in which x* is inside the cube, its gradient vanishes, which is linear in f: a
Gaussian can be conditioned on it exactly. How likely that is, is what the Kac-Rice formula says:
the density of a local maximum at x* is

    p(grad f(x*) = 0)  E[ |det H|, H negative definite | grad f(x*) = 0 ],

H being the Hessian. We take its diagonal entries for independent of each other, and the others for
zero, which is exact in one dimension only. In two, with a squared exponential kernel, the density
was 0.7 to 0.9 of the true one with 1 to 6 observations, 1.1 to 1.3 of it with 15, and 3 times too
high once, where a maximum was rare (docs/log.md, 2026-11-18). A face of the cube on which x* is
needs neither factor.

All is linear in z = (slopes at x*, f(x*), f at representer points). Each observation j is kept as a
row, its covariance with the values in z, and as the combination c_j of z with

    mean(x) = m(x) + sum_j r_j(x) pull_j,    variance(x) = v(x) - sum_j r_j(x)^2,

r_j(x) = cov(f(x), z) c_j, so that `given_optimum` can answer any number of queries.

In NumPy (`numpy_kernels` says why), without gradients.

Shapes: b datasets, k particles, s places, n observations, m representer points, d dimensions, r
observations of z.

Reference: Adler & Taylor, Random Fields and Geometry, 2007, chapter 11 (Kac-Rice).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions import normal
from amortes.nets.kernel import numpy_kernels
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.numpy_kernels import QUIET, Array
from amortes.nets.kernel.optimum.representers import Representers
from amortes.prior.gp import GPPrior

# A coordinate of x* this close to a face counts as on it: its derivative need not vanish.
BOUNDARY = 1e-6
# Slack of the zero-gradient observation, relative to the prior variance of the derivative.
GRADIENT_SLACK = 1e-6


@dataclass(frozen=True)
class Values:
    """f(x*) and, after it, f at m representer points, given r observations."""

    mean: Array  # b x k x s x (1 + m)
    with_star: Array  # b x k x s x (1 + m), covariance with f(x*)
    points: Array  # b x k x m x m, covariance of the points given the data only
    rows: Array  # b x k x s x r x (1 + m)
    combinations: Array  # b x k x s x r x (d + 1 + m)
    pull: Array  # b x k x s x r
    room: Sequence[Array] = ()  # for more rows, combinations and pulls: to allocate takes time

    def direction(self, a: Array) -> tuple[Array, Array]:
        """Of f(x*) less the average a of the points, `b x k x s x m`: what an observation is of.

        Its covariance with each of the values, like `mean`, and what is new in it, a combination
        of z.
        """
        rows = self.rows[..., 1:]
        along = self.rows[..., :1] - rows @ a[..., None]  # b x k x s x r x 1
        covariance = self.with_star.copy()
        covariance[..., 0] -= (a * self.with_star[..., 1:]).sum(-1)
        with_points = a @ self.points + (along.swapaxes(-1, -2) @ rows)[..., 0, :]
        with_points -= (self.rows[..., :1].swapaxes(-1, -2) @ rows)[..., 0, :]
        covariance[..., 1:] -= with_points
        return covariance, self._new(along, a)

    def worse(self, point: NDArray[np.intp]) -> tuple[Array, Array]:
        """`direction` of f(x*) less f at one of the points, `b x k x s x 1`, in less time."""
        rows = self.rows[..., 1:]
        there = np.take_along_axis(rows, point[..., None, :], -1)  # b x k x s x r x 1
        b, k = (np.arange(size)[:, None] for size in self.points.shape[:2])
        covariance = self.with_star.copy()
        covariance[..., 0] -= np.take_along_axis(self.with_star, point + 1, -1)[..., 0]
        covariance[..., 1:] -= self.points[b[..., None], k, point[..., 0]]
        covariance[..., 1:] += (there.swapaxes(-1, -2) @ rows)[..., 0, :]
        unit = np.zeros_like(covariance[..., 1:])
        np.put_along_axis(unit, point, 1.0, -1)
        return covariance, self._new(self.rows[..., :1] - there, unit)

    def _new(self, along: Array, a: Array) -> Array:
        """f(x*) less a's average, less what the observations have of it."""
        new: Array = -(along.swapaxes(-1, -2) @ self.combinations)[..., 0, :]
        m = a.shape[-1]
        new[..., -m - 1] += 1.0
        new[..., -m:] -= a
        return new

    def with_room(self, count: int) -> Self:
        """A copy with room for so many more observations."""
        known = self.rows, self.combinations, self.pull[..., None]
        room = [np.empty((*t.shape[:3], t.shape[3] + count, t.shape[4])) for t in known]
        for new, old in zip(room, known, strict=True):
            new[..., : old.shape[3], :] = old
        return dataclasses.replace(self, room=room)._filled(self.pull.shape[-1])

    def _filled(self, count: int) -> Self:
        """That many rows of the room count."""
        rows, combinations, pull = (t[..., :count, :] for t in self.room)
        return dataclasses.replace(self, rows=rows, combinations=combinations, pull=pull[..., 0])

    def observe(self, direction: tuple[Array, Array], scale: Array, pull: Array) -> Self:
        """Add a row for a direction, times `scale`; in the room there is, which is used up."""
        row, combination = (scale[..., None] * t for t in direction)
        r = self.pull.shape[-1]
        for room, new in zip(self.room, (row, combination, pull[..., None]), strict=True):
            room[..., r, :] = new
        after = self._filled(r + 1)
        return dataclasses.replace(
            after,
            mean=self.mean + row * pull[..., None],
            with_star=self.with_star - row * row[..., :1],
        )

    def truncate(self, direction: tuple[Array, Array], z: Array, sd: Array) -> Self:
        """Keep the moments given that the direction, with mean z sd, is not negative."""
        hazard, distance, _ = (t.numpy() for t in normal.cut_off(torch.from_numpy(z)))
        pull = np.sqrt(hazard / distance)
        return self.observe(direction, np.sqrt(hazard * distance) / sd, pull)


@dataclass(frozen=True)
class LocalMaximum:
    """The posterior given a zero gradient at each of s places."""

    conditioned: Conditioned
    representers: Representers
    V: Array  # b x k x s x d, the places, scaled
    white: Array  # b x k x s x (d + 1) x n, whitened covariances of slopes and f with the data
    inside: Array  # b x 1 x s x d: 1 in coordinates in which x* is not on a face, else 0
    log_flat: Array  # b x k x s, density of the zero gradient
    curvature: Array  # b x k x s x d, mean of the diagonal of the Hessian at x*
    curvature_variance: Array  # b x k x s x d
    curvature_covariance: Array  # b x k x s x d, with f(x*)
    values: Values

    def log_density(self) -> Array:
        """Log density of a local maximum at x*, by the Kac-Rice formula: `b x k x s`.

        Diagonal entries of the Hessian are taken for independent of each other, others for zero.
        """
        sd = np.sqrt(self.curvature_variance)
        log_h: Array = normal.log_h(torch.from_numpy(-self.curvature / sd)).numpy()
        density: Array = self.log_flat + ((np.log(sd) + log_h) * self.inside).sum(-1)
        return density

    def with_value(self, f: Array) -> tuple[Self, Array]:
        """Given f(x*) = f, `b x s`, too; and the log density of that, `b x k x s`."""
        values = self.values.with_room(1)
        surprise, variance = f[:, None] - values.mean[..., 0], values.with_star[..., 0]
        sd = np.sqrt(variance)
        slope = self.curvature_covariance / variance[..., None]
        left = self.curvature_variance - slope * self.curvature_covariance
        nothing = np.zeros_like(values.mean[..., 1:])
        given = dataclasses.replace(
            self,
            curvature=self.curvature + slope * surprise[..., None],
            curvature_variance=np.maximum(left, VARIANCE_FLOOR * self.curvature_variance),
            values=values.observe(values.direction(nothing), 1.0 / sd, surprise / sd),
        )
        return given, -0.5 * np.square(surprise / sd) - normal.LOG_SQRT_2PI - np.log(sd)


@QUIET
@torch.no_grad()
def local_maximum(conditioned: Conditioned, found: Representers, x: Tensor) -> LocalMaximum:
    """The posterior given a zero gradient at x, `b x s x d`, in coordinates inside the cube."""
    kernel, signal = conditioned.prior.kernel, conditioned.signal.numpy()[..., 0]  # b x k x 1
    V, stretch = numpy_kernels.Scaling(conditioned.particles.hyper).values_and_slopes(x.numpy())
    d = x.shape[-1]
    at_data = _AtData.of(conditioned, found, V)
    means, explained, points = at_data.means, at_data.products, at_data.points
    inside = ((x > BOUNDARY) & (x < 1.0 - BOUNDARY))[:, None].double().numpy()
    total = conditioned.prior_variance.numpy()[..., None]  # b x k x 1
    star_mean = conditioned.prior.mean.loc + means[..., d]
    star_variance = np.maximum(total - explained[..., d, d], VARIANCE_FLOOR * total)
    rough = _roughness(conditioned)[..., 0]
    _, slope_at_0, _ = numpy_kernels.value_and_slopes(kernel, np.zeros_like(signal), rough)
    curve_at_0 = numpy_kernels.radial_curvature(kernel, np.zeros_like(signal), rough)
    slope_prior, curve_prior = signal * slope_at_0, 3.0 * signal * curve_at_0  # b x k x 1
    eye = np.eye(d)
    S = (1.0 + GRADIENT_SLACK) * slope_prior[..., None, None] * eye - explained[..., :d, :d]

    # Coordinates on a face drop out: identity block, no covariance, no residual.
    S = S * inside[..., :, None] * inside[..., None, :] + (1.0 - inside)[..., None] * eye
    L = linalg.cholesky(torch.from_numpy(S)).numpy()
    W = np.linalg.inv(L) * inside[..., None, :]
    pull = -(W @ means[..., :d, None])[..., 0]

    # Covariances of f at x* and at the points with slopes (k(x*, grad x*) = 0) and f at x*.
    raw = np.concatenate([-explained[..., d : d + 1, :d].swapaxes(-1, -2), points[..., :d, :]], -1)
    rows = W @ raw  # b x k x s x d x (1 + m)
    at_points = found.moments.mean.numpy()[:, :, None]
    at_points = np.broadcast_to(at_points, (*rows.shape[:3], at_points.shape[-1]))
    variance = star_variance - np.square(rows[..., 0]).sum(-1)
    variance = np.maximum(variance, VARIANCE_FLOOR * total)
    with_points = points[..., d, :] - (rows[..., None, :, 0] @ rows[..., 1:])[..., 0, :]
    combinations = np.zeros((*W.shape[:-1], d + rows.shape[-1]))
    combinations[..., :d] = W
    values = Values(
        mean=np.concatenate([star_mean[..., None], at_points], axis=-1)
        + (pull[..., None, :] @ rows)[..., 0, :],
        with_star=np.concatenate([variance[..., None], with_points], axis=-1),
        points=found.covariance.numpy(),
        rows=rows,
        combinations=combinations,
        pull=pull,
    )

    # A density in the coordinates of the cube: that of scaled ones times the volume they take.
    log_flat = (-0.5 * np.square(pull) - normal.LOG_SQRT_2PI).sum(-1)
    log_flat -= np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(-1)
    log_flat += (np.log(stretch) * inside).sum(-1)
    curve_rows = -explained[..., d + 1 :, :d] @ W.swapaxes(-1, -2)  # b x k x s x d x d
    curve_prior = curve_prior[..., None]
    curve_variance = curve_prior - at_data.squares - np.square(curve_rows).sum(-1)
    with_star = -slope_prior[..., None] - explained[..., d + 1 :, d]
    return LocalMaximum(
        conditioned=conditioned,
        representers=found,
        V=V,
        white=at_data.white,
        inside=inside,
        log_flat=log_flat,
        curvature=means[..., d + 1 :] + (curve_rows @ pull[..., None])[..., 0],
        curvature_variance=np.maximum(curve_variance, VARIANCE_FLOOR * curve_prior),
        curvature_covariance=with_star - (curve_rows @ rows[..., :1])[..., 0],
        values=values,
    )


class _AtData(NamedTuple):
    """Of first derivatives at x* by each scaled coordinate, of f, and of second derivatives.

    In this order, 2 d + 1 in all; what there is of first derivatives and f only, is `... (d + 1)`.
    """

    white: Array  # b x k x s x (d + 1) x n, whitened covariances with the data
    means: Array  # b x k x s x (2 d + 1), without that of the prior
    products: Array  # b x k x s x (2 d + 1) x (d + 1), of whitened covariances
    squares: Array  # b x k x s x d, of second derivatives
    points: Array  # b x k x s x (d + 1) x m, posterior covariances with the points

    @classmethod
    def of(cls, conditioned: Conditioned, found: Representers, V: Array) -> Self:
        """At scaled places V, `b x k x s x d`, a particle at a time: that fits the cache."""
        places = torch.cat([conditioned.V, found.moments.V], dim=2).numpy()
        whitener, coefficients = conditioned.whitener.numpy(), conditioned.coefficients.numpy()
        signal, rough = conditioned.signal.numpy(), _roughness(conditioned)
        (b, k, s, d), n, m = V.shape, whitener.shape[-1], found.share.shape[-1]
        white, points = np.empty((b, k, s, d + 1, n)), np.empty((b, k, s, d + 1, m))
        means, squares = np.empty((b, k, s, 2 * d + 1)), np.empty((b, k, s, d))
        products = np.empty((b, k, s, 2 * d + 1, d + 1))
        for i in np.ndindex(b, k):
            kernels = _derivatives(conditioned.prior, places[i], V[i], signal[i], rough[i])
            means[i] = kernels[..., :n] @ coefficients[i]
            flat = linalg.times_upper(kernels.reshape(-1, n + m)[:, :n], whitener[i])
            whitened = flat.reshape(s, 2 * d + 1, n)
            white[i] = whitened[:, : d + 1]
            products[i] = whitened @ white[i].swapaxes(-1, -2)
            squares[i] = np.square(whitened[:, d + 1 :]).sum(-1)
            points[i] = kernels[:, : d + 1, n:] - white[i] @ found.moments.whitened[i].numpy()
        return cls(white, means, products, squares, points)


def _derivatives(prior: GPPrior, X: Array, V: Array, signal: Array, rough: Array) -> Array:
    """Prior covariances with f at scaled points X, `n x d`, of what `_AtData` has at V, `s x d`."""
    d = V.shape[-1]
    r2 = numpy_kernels.square_distance(V, X)  # s x n
    value, slope, _ = numpy_kernels.value_and_slopes(prior.kernel, r2, rough)
    curvature = (signal * numpy_kernels.radial_curvature(prior.kernel, r2, rough))[:, None]
    slope = (signal * slope)[:, None]
    away = X.T - V[..., None]  # s x d x n
    kernels = np.empty((len(V), 2 * d + 1, len(X)))
    np.multiply(slope, away, out=kernels[:, :d])
    kernels[:, d] = signal * value + prior.mean.scale**2
    away *= away
    away *= curvature
    np.subtract(away, slope, out=kernels[:, d + 1 :])
    return kernels


def _roughness(conditioned: Conditioned) -> Array:
    """That of a mixed kernel: `b x k x 1 x 1`."""
    rough = conditioned.roughness
    return np.zeros_like(conditioned.signal.numpy()) if rough is None else rough.numpy()
