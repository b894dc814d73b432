"""The posterior of f given its optimum: x*, or x* and f*.

*Locally.* In every coordinate in which x* is inside the cube, its gradient vanishes, which is
linear in f: a Gaussian can be conditioned on it exactly. How likely that is, is what the Kac-Rice
formula says: the density of a local maximum at x* is

    p(grad f(x*) = 0)  E[ |det H|, H negative definite | grad f(x*) = 0 ],

H being the Hessian. We take its diagonal entries for independent of each other, and the others for
zero, which is exact in one dimension only. In two, with a squared exponential kernel, the density
was 0.7 to 0.9 of the true one with 1 to 6 observations, 1.1 to 1.3 of it with 15, and 3 times too
high once, where a maximum was rare (docs/log.md, 2026-11-18). A face of the cube on which x* is
needs neither factor.

*Globally.* Nothing is higher: f(x*) less the maximum of f, as far as that was known before, is not
negative, and neither is f(x*) - f(m) for any representer point m. One after the other, first for
the maximum, then for those points where most would be missing, the difference is truncated at zero
and the Gaussian with the moments of the result is kept (assumed-density filtering). The
probabilities of the truncations multiply to that of the whole. If f* is known, f(x*) = f* is
conditioned on first.

All is linear in z = (slopes at x*, f(x*), f at representer points). Each observation j is kept as a
row, its covariance with the values in z, and as the combination c_j of z with

    mean(x) = m(x) + sum_j r_j(x) pull_j,    variance(x) = v(x) - sum_j r_j(x)^2,

r_j(x) = cov(f(x), z) c_j, so that `truncated` can answer any number of queries.

The evidence says how well a particle explains the optimum: the density of a local maximum at x*
times the probability that nothing is higher and, if f* is known, the density of f(x*) there. All of
these are approximations, so that it counts for a little less than it says (`EVIDENCE`).

Shapes: b datasets, k particles, s optima, m representer points, d dimensions, r observations.

References: Adler & Taylor, Random Fields and Geometry, 2007, chapter 11 (Kac-Rice); Minka, A family
of algorithms for approximate Bayesian inference, 2001 (assumed-density filtering); Hernandez-Lobato
et al., Predictive entropy search, NeurIPS 2014 (both for entropy search).
"""

import dataclasses
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions.normal import (
    cut_off,
    log_h,
    log_ndtr,
    log_normal,
)
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.representers import DENSE, Representers
from amortes.prior.kernels import radial_curvature, radial_slope

# A coordinate of x* this close to a face counts as on it: its derivative need not vanish.
BOUNDARY = 1e-6
# Slack of the zero-gradient observation, relative to the prior variance of the derivative.
GRADIENT_SLACK = 1e-6
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
class Values:
    """f(x*) and, after it, f at m representer points, given r observations."""

    mean: Tensor  # b x k x s x (1 + m)
    with_star: Tensor  # b x k x s x (1 + m), covariance with f(x*)
    points: Tensor  # b x k x m x m, covariance of the points given the data only
    rows: Tensor  # b x k x s x (1 + m) x r
    combinations: Tensor  # b x k x s x r x (d + 1 + m)
    pull: Tensor  # b x k x s x r

    def direction(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """Of the combination a of the values: its covariance with each, and what is new in it.

        The first like a, `b x k x s x (1 + m)`, the second a combination of z.
        """
        star, points = a[..., :1], a[..., 1:]
        rows = self.rows[..., 1:, :]
        along = points[..., None, :] @ rows  # b x k x s x 1 x r
        with_star = (points * self.with_star[..., 1:]).sum(-1, keepdim=True)
        with_points = points @ self.points - (rows @ along.mT).squeeze(-1)
        covariance = torch.cat([with_star, with_points], dim=-1) + star * self.with_star
        along = along + star[..., None] * self.rows[..., :1, :]
        raw = torch.nn.functional.pad(a, (self.combinations.shape[-1] - a.shape[-1], 0))
        return covariance, raw - (along @ self.combinations).squeeze(-2)

    def observe(self, direction: tuple[Tensor, Tensor], scale: Tensor, pull: Tensor) -> Self:
        """Add a row for a direction, times `scale`."""
        row, combination = (scale[..., None] * t for t in direction)
        return dataclasses.replace(
            self,
            mean=torch.addcmul(self.mean, row, pull[..., None]),
            with_star=torch.addcmul(self.with_star, row, row[..., :1], value=-1.0),
            rows=torch.cat([self.rows, row[..., None]], dim=-1),
            combinations=torch.cat([self.combinations, combination[..., None, :]], dim=-2),
            pull=torch.cat([self.pull, pull[..., None]], dim=-1),
        )

    def truncate(self, direction: tuple[Tensor, Tensor], z: Tensor, sd: Tensor) -> Self:
        """Keep the moments given that the direction, with mean z sd, is not negative."""
        hazard, distance, _ = cut_off(z)
        return self.observe(direction, (hazard * distance).sqrt() / sd, (hazard / distance).sqrt())

    @property
    def star(self) -> Tensor:
        """The combination that is f(x*)."""
        unit = torch.zeros_like(self.mean)
        unit[..., 0] = 1.0
        return unit


@dataclass(frozen=True)
class LocalMaximum:
    """The posterior given a zero gradient at each of s places."""

    conditioned: Conditioned
    representers: Representers
    x: Tensor  # b x s x d
    moments: Moments  # b x k x s, at x*
    white: Tensor  # b x k x s x (d + 1) x n, whitened covariances of slopes and f with the data
    inside: Tensor  # b x 1 x s x d: 1 in coordinates in which x* is not on a face, else 0
    log_flat: Tensor  # b x k x s, density of the zero gradient
    curvature: Tensor  # b x k x s x d, mean of the diagonal of the Hessian at x*
    curvature_variance: Tensor  # b x k x s x d
    curvature_covariance: Tensor  # b x k x s x d, with f(x*)
    values: Values

    def log_density(self) -> Tensor:
        """Log density of a local maximum at x*, by the Kac-Rice formula: `b x k x s`.

        Diagonal entries of the Hessian are taken for independent of each other, others for zero.
        """
        sd = self.curvature_variance.sqrt()
        log_sharp = sd.log() + log_h(-self.curvature / sd)
        return self.log_flat + (log_sharp * self.inside).sum(-1)

    def with_value(self, f: Tensor) -> tuple[Self, Tensor]:
        """Given f(x*) = f, `b x s`, too; and the log density of that, `b x k x s`."""
        values = self.values
        surprise, variance = f[:, None] - values.mean[..., 0], values.with_star[..., 0]
        sd = variance.sqrt()
        slope = self.curvature_covariance / variance[..., None]
        left = self.curvature_variance - slope * self.curvature_covariance
        given = dataclasses.replace(
            self,
            curvature=self.curvature + slope * surprise[..., None],
            curvature_variance=left.clamp_min(VARIANCE_FLOOR * self.curvature_variance),
            values=values.observe(values.direction(values.star), 1.0 / sd, surprise / sd),
        )
        return given, log_normal(surprise / sd) - sd.log()

    def highest(self, rounds: int) -> tuple[Values, Tensor]:
        """Given f(x*) >= the maximum, and >= f at `rounds` points where it is least clear, too.

        Also the log probability of that, `b x k x s`.
        """
        values, log_probability = self.values, torch.zeros_like(self.log_flat)
        if self.x.shape[-1] > DENSE:
            values, log_probability = self._above_maximum()
        total = self.conditioned.prior_variance[..., None, None]
        floor, tie = VARIANCE_FLOOR * total, TIE * total.sqrt()
        points, star = self.representers.moments.variance[:, :, None], values.star
        fresh = torch.ones_like(star[..., 1:], dtype=torch.bool)
        for _ in range(rounds):
            left = (points - values.rows[..., 1:, :].square().sum(-1)).clamp_min(floor)
            variance, covariance = (
                values.with_star[..., :1].clamp_min(0.0),
                values.with_star[..., 1:],
            )
            sd = (left + variance - 2.0 * covariance).clamp_min(floor).sqrt()
            gap = values.mean[..., :1] - values.mean[..., 1:] + tie
            missing = sd * torch.nn.functional.softplus(-LOGISTIC * gap / sd)  # E[max(-gap, 0)]
            worst = missing.where(fresh, -1.0).argmax(-1, keepdim=True)
            fresh = fresh.scatter(3, worst, False)
            gap, sd = (t.gather(3, worst).squeeze(-1) for t in (gap, sd))
            log_probability = log_probability + log_ndtr(gap / sd)
            direction = values.direction(star.scatter(3, worst + 1, -1.0))
            values = values.truncate(direction, gap / sd, sd)
        return values, log_probability

    def _above_maximum(self) -> tuple[Values, Tensor]:
        """Given f(x*) >= the maximum M, and the log probability of that.

        By Stein's lemma cov(f(x), M) = sum_m P(m is the highest) cov(f(x), f(m)).
        """
        values, found = self.values, self.representers
        a = torch.cat([torch.ones_like(found.max_mean)[..., None], -found.share], dim=-1)
        a = a[:, :, None].expand_as(values.mean)
        # M is the average by shares plus something independent of it, with a mean of its own.
        offset = (found.share * found.moments.mean).sum(-1) - found.max_mean
        direction = values.direction(a)
        variance = (a * direction[0]).sum(-1) + found.max_unexplained[..., None]
        sd = variance.clamp_min(TINY).sqrt()
        z = ((a * values.mean).sum(-1) + offset[..., None]) / sd
        return values.truncate(direction, z, sd), log_ndtr(z)


@torch.no_grad()
def local_maximum(conditioned: Conditioned, found: Representers, x: Tensor) -> LocalMaximum:
    """The posterior given a zero gradient at x, `b x s x d`, in coordinates inside the cube."""
    kernel, rough = conditioned.prior.kernel, conditioned.roughness
    s, d = x.shape[1:]
    at_star = conditioned.moments(x)
    inside = ((x > BOUNDARY) & (x < 1.0 - BOUNDARY))[:, None].to(x.dtype)

    # Covariances with f at the data: first and second derivatives by each coordinate, and f.
    raw, raw_curves = conditioned.derivative_kernels(conditioned.V, at_star.V)
    a = conditioned.coefficients[:, :, None, :, None]
    slope_mean, curve_mean = ((t @ a).squeeze(-1) for t in (raw[..., :d, :], raw_curves))
    white, curves = (
        (t.flatten(2, 3) @ conditioned.whitener.mT).reshape(t.shape) for t in (raw, raw_curves)
    )
    explained = _products(white, white)  # b x k x s x (d + 1) x (d + 1)
    curve_explained = _products(curves, white)  # b x k x s x d x (d + 1)
    signal = conditioned.signal
    zero = torch.zeros_like(signal)
    slope_prior = signal * radial_slope(kernel, zero, rough)  # b x k x 1 x 1
    curve_prior = 3.0 * signal * radial_curvature(kernel, zero, rough)
    eye = torch.eye(d, dtype=x.dtype)
    S = slope_prior[..., None] * (1.0 + GRADIENT_SLACK) * eye - explained[..., :d, :d]

    # Coordinates on a face drop out: identity block, no covariance, no residual.
    S = S * inside[..., :, None] * inside[..., None, :]
    L = linalg.cholesky(S + torch.diag_embed((1.0 - inside).expand_as(slope_mean)))
    W: Tensor = torch.linalg.solve_triangular(L, eye.expand_as(S), upper=False)
    W = W * inside[..., None, :]
    pull = -(W @ slope_mean[..., None]).squeeze(-1)

    # Covariances of f at x* and at the points with slopes (k(x*, grad x*) = 0) and f at x*.
    at = found.moments
    raw, _ = conditioned.derivative_kernels(at.V, at_star.V)
    raw = (raw - (white.flatten(2, 3) @ at.whitened).reshape(raw.shape)).mT  # b x k x s x m x ...
    rows = torch.cat([-explained[..., d:, :d], raw[..., :d]], dim=-2) @ W.mT
    mean = torch.cat([at_star.mean[..., None], at.mean[:, :, None].expand(-1, -1, s, -1)], dim=-1)
    variance = at_star.variance - rows[..., 0, :].square().sum(-1)
    variance = variance.clamp_min(VARIANCE_FLOOR * conditioned.prior_variance[..., None])
    with_points = raw[..., d] - (rows[..., 1:, :] @ rows[..., 0, :, None]).squeeze(-1)
    values = Values(
        mean=mean + (rows @ pull[..., None]).squeeze(-1),
        with_star=torch.cat([variance[..., None], with_points], dim=-1),
        points=found.covariance,
        rows=rows,
        combinations=torch.nn.functional.pad(W, (0, raw.shape[-2] + 1)),
        pull=pull,
    )

    # A density in the coordinates of the cube: that of scaled ones times the volume they take.
    log_flat = log_normal(pull).sum(-1) - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_flat = log_flat + (conditioned.log_stretch(x) * inside).sum(-1)
    curve_rows = -curve_explained[..., :d] @ W.mT
    curve_variance = curve_prior - curves.square().sum(-1) - curve_rows.square().sum(-1)
    with_star = -slope_prior - curve_explained[..., d]
    return LocalMaximum(
        conditioned=conditioned,
        representers=found,
        x=x,
        moments=at_star,
        white=white,
        inside=inside,
        log_flat=log_flat,
        curvature=curve_mean + (curve_rows * pull[..., None, :]).sum(-1),
        curvature_variance=curve_variance.clamp_min(VARIANCE_FLOOR * curve_prior),
        curvature_covariance=with_star - (curve_rows * rows[..., :1, :]).sum(-1),
        values=values,
    )


def _products(A: Tensor, B: Tensor) -> Tensor:
    """A B', `... x p x n` and `... x q x n`; NumPy is faster at many small products."""
    return torch.from_numpy(A.numpy() @ B.numpy().swapaxes(-1, -2))


@dataclass(frozen=True)
class GivenOptimum:
    """Given the global maximum at each of s places, and perhaps its value."""

    local: LocalMaximum
    values: Values
    log_evidence: Tensor  # b x k x s

    @classmethod
    def of(cls, local: LocalMaximum, f: Tensor | None) -> Self:
        """A local maximum is the global one, and its value f, `b x s`, if that is known."""
        log_value = torch.zeros_like(local.log_flat)
        if f is not None:
            local, log_value = local.with_value(f)
        values, log_highest = local.highest(ROUNDS)
        evidence = log_value + local.log_density() + log_highest
        return cls(local, values, EVIDENCE * evidence)
