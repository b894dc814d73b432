"""The posterior of f given its optimum, x*, or x* and f*: at any queries, for s optima at once.

x* is a local maximum (`local_maximum`), and nothing is higher. That is truncated in turn:

*Known points.* f(x*) less the maximum of f, as far as that was known before, is not negative, and
neither is f(x*) - f(m) for any representer point m. One after the other, first for the maximum,
then for those points where most would be missing, the difference is truncated at zero and the
Gaussian with the moments of the result is kept (assumed-density filtering). The probabilities of
the truncations multiply to that of the whole. If f* is known, f(x*) = f* is conditioned on first.

*Queries.* What an optimum says is linear in the slopes and f at x* and in f at representer points.
With u the posterior covariances of f(x) with the first and w with the last of these,

    columns(x) = A u + B w

are r covariances with the observations of `local_maximum.Values`, the shift of the mean, and the
posterior covariance with f(x*):

    mean(x) = m(x) + column_r,    variance(x) = v(x) - sum_{j < r} column_j^2.

f(x) <= f(x*) comes last. With f(x) ~ N(m, v), f(x*) ~ N(m*, v*) and covariance c, the difference
f(x*) - f(x) has the variance g^2 = v + v* - 2c and the standardised mean z = (m* - m) / g. With the
hazard λ and the distance δ = λ + z of a normal cut off at z (`distributions.normal`) and
t = (c - v) / g,

    mean = m + t λ,    variance = v - t^2 λδ.

The evidence says how well a particle explains the optimum: the density of a local maximum at x*
times the probability that nothing is higher and, if f* is known, the density of f(x*) there. All of
these are approximations, so that it counts for a little less than it says (`EVIDENCE`).

In NumPy, for queries with gradients in closed form: a search asks for some ten of them.

Shapes: b datasets, k particles, s optima, m representer points, q queries, n observations, d
dimensions, r observations of slopes and values, c = r + 2 columns, p = n + m + s points.

References: Minka, A family of algorithms for approximate Bayesian inference, 2001 (assumed-density
filtering); Hernandez-Lobato et al., Predictive entropy search, NeurIPS 2014 (the same for entropy
search); Tallis, The moment generating function of the truncated multi-normal distribution, JRSS B
23(1), 1961.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions import normal
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR
from amortes.nets.kernel.numpy_kernels import (
    QUIET,
    Array,
    PullBack,
    Scaling,
    differentiable,
    radial_curvature,
    square_distance,
    value_and_slopes,
)
from amortes.nets.kernel.optimum.local_maximum import LocalMaximum, Values
from amortes.nets.kernel.optimum.thompson_draws import DENSE

# Relative to the prior sd, how much higher than x* another point may be: one at x* itself is not.
TIE = 2e-4
# The normal distribution function is about the logistic one of so many times the argument.
LOGISTIC = 1.702
TINY = 1e-12
# Representer points below which f is held, one after the other, when x* is known.
ROUNDS = 4
# Power of the evidence that is used: with it draws give much weight to the particles they are from,
# in 1 to 16 dimensions (docs/log.md, 2026-11-18).
EVIDENCE = 0.75


@dataclass(frozen=True)
class GivenOptimum:
    """Given the global maximum at each of s places, and perhaps its value."""

    local: LocalMaximum
    values: Values
    log_evidence: Tensor  # b x k x s

    @classmethod
    @QUIET
    def of(cls, local: LocalMaximum, f: Tensor | None) -> Self:
        """A local maximum is the global one, and its value f, `b x s`, if that is known."""
        log_value = np.zeros_like(local.log_flat)
        if f is not None:
            local, log_value = local.with_value(f.detach().numpy())
        values, log_highest = highest(local, ROUNDS)
        evidence = log_value + local.log_density() + log_highest
        return cls(local, values, torch.from_numpy(EVIDENCE * evidence))


def highest(local: LocalMaximum, rounds: int) -> tuple[Values, Array]:
    """Given f(x*) >= the maximum, and >= f at `rounds` points where it is least clear, too.

    Also the log probability of that, `b x k x s`.
    """
    values, log_probability = local.values.with_room(1 + rounds), np.zeros_like(local.log_flat)
    if local.V.shape[-1] > DENSE:
        values, log_probability = _above_maximum(local, values)
    total = local.conditioned.prior_variance.numpy()[..., None, None]
    floor, tie = VARIANCE_FLOOR * total, TIE * np.sqrt(total)
    points = local.representers.moments.variance.numpy()[:, :, None]
    fresh = np.ones_like(values.mean[..., 1:], dtype=bool)
    for _ in range(rounds):
        rows = values.rows[..., 1:]
        left = np.maximum(points - np.einsum("bksrm,bksrm->bksm", rows, rows), floor)
        variance = np.maximum(values.with_star[..., :1], 0.0)
        sd = np.sqrt(np.maximum(left + variance - 2.0 * values.with_star[..., 1:], floor))
        gap = values.mean[..., :1] - values.mean[..., 1:] + tie
        missing = sd * np.logaddexp(0.0, -LOGISTIC * gap / sd)  # E[max(-gap, 0)]
        worst = np.where(fresh, missing, -1.0).argmax(-1)[..., None]
        np.put_along_axis(fresh, worst, False, -1)
        gap, sd = (np.take_along_axis(t, worst, -1)[..., 0] for t in (gap, sd))
        log_probability = log_probability + _log_ndtr(gap / sd)
        values = values.truncate(values.worse(worst), gap / sd, sd)
    return values, log_probability


def _above_maximum(local: LocalMaximum, values: Values) -> tuple[Values, Array]:
    """Given f(x*) >= the maximum M, and the log probability of that.

    By Stein's lemma cov(f(x), M) = sum_m P(m is the highest) cov(f(x), f(m)).
    """
    found = local.representers
    share = found.share.numpy()
    a = np.broadcast_to(share[:, :, None], values.mean[..., 1:].shape)
    # M is the average by shares plus something independent of it, with a mean of its own.
    offset = (share * found.moments.mean.numpy()).sum(-1) - found.max_mean.numpy()
    direction = values.direction(a)
    mean, variance = (t[..., 0] - (a * t[..., 1:]).sum(-1) for t in (values.mean, direction[0]))
    sd = np.sqrt(np.maximum(variance + found.max_unexplained.numpy()[..., None], TINY))
    z = (mean + offset[..., None]) / sd
    return values.truncate(direction, z, sd), _log_ndtr(z)


def _log_ndtr(z: Array) -> Array:
    log_chance: Array = normal.log_ndtr(torch.from_numpy(z)).numpy()
    return log_chance


class TruncatedMoments:
    """Given each of s optima; everything that all queries share."""

    def __init__(self, given: GivenOptimum) -> None:
        local, values = given.local, given.values
        conditioned, points = local.conditioned, local.representers.moments
        self.prior, hyper = conditioned.prior, conditioned.particles.hyper
        self.scaling = Scaling(hyper)
        self.signal = conditioned.signal.numpy()  # b x k x 1 x 1
        rough = conditioned.roughness
        self.roughness = 0.0 if rough is None else rough.numpy()
        self.prior_variance = conditioned.prior_variance.numpy()[..., None]  # b x k x 1
        self.whitener = conditioned.whitener.numpy()  # b x k x n x n
        self.coefficients = conditioned.coefficients.numpy()[..., None]  # b x k x n x 1
        self.star_V = local.V  # b x k x s x d
        self.places = np.concatenate([conditioned.V.numpy(), points.V.numpy(), local.V], axis=2)
        self.whitened = points.whitened.numpy()  # b x k x n x m
        self.white = local.white  # b x k x s x (d + 1) x n
        self.star_mean = values.mean[..., :1]  # b x k x s x 1
        self.star_variance = np.maximum(values.with_star[..., :1], 0.0)
        combined, d = values.combinations, local.V.shape[-1]
        shift = values.pull[..., None, :] @ combined
        with_star = -values.rows[..., 0][..., None, :] @ combined
        with_star[..., d] += 1.0
        columns = np.concatenate([combined, shift, with_star], axis=-2)
        self.A = columns[..., : d + 1].copy()  # b x k x s x c x (d + 1)
        # Observations of slopes, the first d, are of slopes only.
        self.B = columns[..., d:, d + 1 :].reshape(*columns.shape[:2], -1, self.whitened.shape[-1])

    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Means and variances of f at Xq, `b x q x d`.

        Before, `b x k x q`, and given each optimum and f(x) <= f(x*), `b x k x q x s`.
        """
        mean, variance, m, v = differentiable(self.forward, Xq)
        return mean, variance, m.mT, v.mT

    def forward(self, X: Array) -> tuple[tuple[Array, ...], PullBack]:
        """The same with queries last, `b x k x s x q`, and derivatives."""
        (mean, variance, m, v, with_star), pull_back_moments = self.moments(X)
        floor = VARIANCE_FLOOR * self.prior_variance[..., None]
        truncated, pull_back_truncated = truncate(
            m, v, with_star, self.star_mean, self.star_variance, floor
        )

        def pull_back(by_mean: Array, by_variance: Array, by_m: Array, by_v: Array) -> Array:
            return pull_back_moments(by_mean, by_variance, *pull_back_truncated(by_m, by_v))

        return (mean, variance, *truncated), pull_back

    def moments(self, X: Array) -> tuple[tuple[Array, ...], PullBack]:
        """The same without the last truncation, and the covariance with f(x*)."""
        (b, k, s, _, _), (n, m) = self.A.shape, self.whitened.shape[-2:]
        q, d = X.shape[1:]
        V, stretch = self.scaling.values_and_slopes(X)
        r2 = square_distance(self.places, V)
        value, slope, _ = value_and_slopes(self.prior.kernel, r2, self.roughness)
        slope = self.signal * slope  # b x k x p x q
        K = self.signal * value
        K += self.prior.mean.scale**2
        whitened = linalg.lower_times(self.whitener, K[..., :n, :])  # b x k x n x q
        mean = (self.coefficients.swapaxes(-1, -2) @ K[..., :n, :])[..., 0, :] + self.prior.mean.loc
        known = self.prior_variance - np.square(whitened).sum(-2)
        # Posterior covariances with slopes and f at x*, and with f at representer points.
        u = (self.white.reshape(b, k, -1, n) @ whitened).reshape(b, k, s, d + 1, q)
        np.negative(u, out=u)
        away = V.swapaxes(-1, -2)[:, :, None] - self.star_V[..., None]  # b x k x s x d x q
        star_slope = slope[..., n + m :, None, :]
        u[..., :d, :] += star_slope * away
        u[..., d, :] += K[..., n + m :, :]
        w = K[..., n : n + m, :] - self.whitened.swapaxes(-1, -2) @ whitened
        columns = self.A @ u  # b x k x s x c x q
        columns[..., d:, :] += (self.B @ w).reshape(b, k, s, -1, q)
        rows, shift, with_star = columns[..., :-2, :], columns[..., -2, :], columns[..., -1, :]
        floor = VARIANCE_FLOOR * self.prior_variance
        variance = np.maximum(known, floor)
        left = variance[:, :, None] - np.einsum("bkscq,bkscq->bksq", rows, rows)
        results = (
            mean,
            variance,
            mean[:, :, None] + shift,
            np.maximum(left, floor[..., None]),
            with_star,
        )

        def pull_back(
            by_mean: Array, by_variance: Array, by_shift: Array, by_left: Array, by_star: Array
        ) -> Array:
            by_left = by_left * (left >= floor[..., None])
            by_mean = by_mean + by_shift.sum(2)
            by_variance = (by_variance + by_left.sum(2)) * (known >= floor)
            by_columns = columns * (-2.0 * by_left)[..., None, :]
            by_columns[..., -2, :], by_columns[..., -1, :] = by_shift, by_star
            by_u = self.A.swapaxes(-1, -2) @ by_columns
            by_w = self.B.swapaxes(-1, -2) @ by_columns[..., d:, :].reshape(b, k, -1, q)
            by_white = self.white.reshape(b, k, -1, n).swapaxes(-1, -2) @ by_u.reshape(b, k, -1, q)
            by_white += self.whitened @ by_w
            by_white += 2.0 * by_variance[..., None, :] * whitened
            by_data = self.coefficients * by_mean[..., None, :]
            by_data -= self.whitener.swapaxes(-1, -2) @ by_white
            # Through values of the kernel and, at x*, through its radial slope.
            pull = np.concatenate([by_data, by_w, by_u[..., d, :]], axis=-2)
            pull *= slope
            curvature = radial_curvature(self.prior.kernel, r2[..., n + m :, :], self.roughness)
            curvature *= self.signal
            along = np.einsum("bksdq,bksdq->bksq", by_u[..., :d, :], away)
            pull[..., n + m :, :] += curvature * along
            by_V = pull.swapaxes(-1, -2) @ self.places - pull.sum(-2)[..., None] * V
            by_V += np.einsum("bksdq,bksq->bkqd", by_u[..., :d, :], slope[..., n + m :, :])
            by_X: Array = (by_V * stretch).sum(1)
            return by_X

        return results, pull_back


def truncate(
    m: Array, v: Array, c: Array, star_mean: Array, star_variance: Array, floor: Array
) -> tuple[tuple[Array, Array], Callable[[Array, Array], tuple[Array, Array, Array]]]:
    """Mean and variance of f(x) given f(x) <= f(x*), for m, v, c of one shape; others broadcast.

    Also how their derivatives become those by m, v and c. Neither g^2 nor the variance is less than
    `floor`.
    """
    square = v + star_variance
    square -= 2.0 * c
    gap = np.sqrt(np.maximum(square, floor))
    z = (star_mean - m) / gap
    hazard, distance, width = (t.numpy() for t in normal.cut_off(torch.from_numpy(z)))
    slope = (c - v) / gap
    lost = hazard * distance
    left = v - np.square(slope) * lost

    def pull_back(by_mean: Array, by_variance: Array) -> tuple[Array, Array, Array]:
        by_variance = by_variance * (left >= floor)
        twice = by_variance * slope
        by_slope = by_mean * hazard - 2.0 * twice * lost
        # dλ/dz = -λδ and d(λδ)/dz = λ (w - δ^2), with the width w of the normal that is left.
        bend = hazard * (width - np.square(distance))
        by_z = slope * (by_mean * lost + twice * bend)
        np.negative(by_z, out=by_z)
        by_slope /= gap  # now by c - v
        by_square = (by_z * z / gap + by_slope * slope) / gap
        by_square *= -0.5 * (square >= floor)
        return by_mean - by_z / gap, by_variance + by_square - by_slope, by_slope - 2.0 * by_square

    return (m + slope * hazard, np.maximum(left, floor)), pull_back
