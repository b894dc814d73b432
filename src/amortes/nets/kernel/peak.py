"""The posterior of f, given that its maximum is at x*.

*Locally.* In every coordinate in which x* is inside the cube, its gradient vanishes, which is
linear in f: a Gaussian can be conditioned on it exactly. How likely that is, is what the Kac-Rice
formula says: the density of a local maximum at x* is

    p(grad f(x*) = 0)  E[ |det H|, H negative definite | grad f(x*) = 0 ],

H being the Hessian, of which we take the diagonal. A face of the cube on which x* is needs neither.

*Globally.* No landmark is higher: the gap f(x*) - f(m) is not negative. One after the other, for
those landmarks where most would be missing, the gap is truncated at zero and the Gaussian with the
moments of the result is kept (assumed-density filtering). The probabilities of the truncations
multiply to that of the whole.

All is linear in a few directions of f. So the posterior is kept as means, variances and, for
covariances, the sum of outer products (`removed`) by which it differs from that given the data.

References: Adler & Taylor, Random Fields and Geometry, 2007, chapter 11 (Kac-Rice); Minka, A family
of algorithms for approximate Bayesian inference, 2001 (assumed-density filtering).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions.normal import inverse_mills, log_h, log_ndtr, log_normal
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.prior.kernels import radial_curvature, radial_slope

# A coordinate of x* this close to a face counts as on it: its derivative need not vanish.
BOUNDARY = 1e-6
# Slack of the zero-gradient observation, relative to the prior variance of the derivative.
GRADIENT_SLACK = 1e-6
# Relative to the prior sd, how much higher than x* a landmark may be: one at x* itself is not.
TIE = 2e-4


@dataclass
class Peak:
    """Posterior at p points under each particle; the methods add what is known."""

    conditioned: Conditioned
    X: Tensor  # b x p x d
    whitened: Tensor  # b x k x n x p, as in `Moments`
    mean: Tensor  # b x k x p
    variance: Tensor  # b x k x p
    removed: Tensor  # b x k x r x p
    covariance: Tensor  # b x k x p, with f(x*)
    star_mean: Tensor  # b x k x 1, of f(x*)
    star_variance: Tensor  # b x k x 1
    log_flat: Tensor  # b x k, density of the zero gradient
    curvature: Tensor  # b x k x d, mean of the diagonal of the Hessian at x*
    curvature_variance: Tensor  # b x k x d
    curvature_covariance: Tensor  # b x k x d, with f(x*)
    inside: Tensor  # b x 1 x d: 1 in coordinates in which x* is not on a face, else 0

    def log_density(self) -> Tensor:
        """Log density of a local maximum at x*: `b x k`."""
        sd = self.curvature_variance.sqrt()
        log_sharp = sd.log() + log_h(-self.curvature / sd)
        return self.log_flat + (log_sharp * self.inside).sum(-1)

    def observe_value(self, f: Tensor) -> Tensor:
        """Condition on f(x*) = f, `b`; returns the log density of that, `b x k`."""
        surprise = f[:, None, None] - self.star_mean
        sd = self.star_variance.sqrt()
        root = self.covariance / sd
        self.mean = self.mean + root * surprise / sd
        self.variance = self._floored(self.variance - root.square())
        self.removed = torch.cat([self.removed, root[:, :, None]], dim=2)
        slope = self.curvature_covariance / self.star_variance
        self.curvature = self.curvature + slope * surprise
        left = self.curvature_variance - slope * self.curvature_covariance
        self.curvature_variance = left.clamp_min(VARIANCE_FLOOR * self.curvature_variance)
        self.star_mean = f[:, None, None].expand_as(self.star_mean)
        self.star_variance = torch.zeros_like(self.star_variance)
        self.covariance = torch.zeros_like(self.covariance)
        return (log_normal(surprise / sd) - sd.log()).squeeze(-1)

    def observe_highest(self, candidates: int, rounds: int) -> Tensor:
        """Condition on f(x*) >= f at the last `candidates` points, for `rounds` of them.

        Returns the log probability of that, `b x k`.
        """
        log_probability = torch.zeros_like(self.log_flat)
        b, k, p = self.mean.shape
        fresh = torch.ones(b, k, candidates, dtype=torch.bool)
        tie = TIE * self.conditioned.prior_variance.sqrt()[..., None]
        for _ in range(rounds):
            mean, sd = self._gap(slice(p - candidates, p))
            mean = mean + tie
            missing = sd.log() + log_h(-mean / sd)  # log E[max(-gap, 0)]
            worst = missing.detach().where(fresh, -torch.inf).argmax(-1, keepdim=True)
            fresh = fresh.scatter(2, worst, False)
            z = mean.gather(2, worst) / sd.gather(2, worst)
            log_probability = log_probability + log_ndtr(z).squeeze(-1)
            self._truncate(worst + (p - candidates), z, sd.gather(2, worst))
        return log_probability

    def below(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of f(x), given also f(x) <= f(x*), at the first `count` points.

        Also the standardised gap before that; all `b x k x count`.
        """
        points = slice(count)
        gap_mean, gap_sd = self._gap(points)
        z = gap_mean / gap_sd
        with_gap = self.covariance[..., points] - self.variance[..., points]
        hazard = inverse_mills(z)
        mean = self.mean[..., points] + with_gap * hazard / gap_sd
        shrink = hazard * (hazard + z) / gap_sd.square()
        variance = self.variance[..., points] - with_gap.square() * shrink
        return mean, self._floored(variance), z

    def _gap(self, points: slice) -> tuple[Tensor, Tensor]:
        """Mean and sd of f(x*) - f(x) at some of the points."""
        total = self.star_variance + self.variance[..., points]
        variance = self._floored(total - 2.0 * self.covariance[..., points])
        return self.star_mean - self.mean[..., points], variance.sqrt()

    def _truncate(self, index: Tensor, z: Tensor, sd: Tensor) -> None:
        """Truncate the gap to point `index`, `b x k x 1`, with standardised mean z, at zero."""
        conditioned = self.conditioned
        b, k, p = self.mean.shape
        d, n, r = self.X.shape[-1], self.whitened.shape[2], self.removed.shape[2]
        x = self.X[:, None].expand(b, k, p, d).gather(2, index[..., None].expand(b, k, 1, d))
        prior = conditioned.kernel_between(self.X[:, None], x).squeeze(-1)  # b x k x p
        white = self.whitened.gather(3, index[:, :, None].expand(b, k, n, 1))
        gone = self.removed.gather(3, index[:, :, None].expand(b, k, r, 1))
        with_point = prior - (self.whitened.mT @ white + self.removed.mT @ gone).squeeze(-1)
        c = self.covariance - with_point  # b x k x p, with the gap
        c_star = self.star_variance - self.covariance.gather(2, index)
        hazard = inverse_mills(z)
        shift, root = hazard / sd, (hazard * (hazard + z)).clamp_min(0.0).sqrt() / sd
        self.mean = self.mean + c * shift
        self.star_mean = self.star_mean + c_star * shift
        self.variance = self._floored(self.variance - (c * root).square())
        self.covariance = self.covariance - c * c_star * root.square()
        self.star_variance = (self.star_variance - (c_star * root).square()).clamp_min(0.0)
        self.removed = torch.cat([self.removed, (c * root)[:, :, None]], dim=2)

    def _floored(self, variance: Tensor) -> Tensor:
        return variance.clamp_min(VARIANCE_FLOOR * self.conditioned.prior_variance[..., None])


def peak_at(conditioned: Conditioned, X: Tensor, at: Moments, x_star: Tensor) -> Peak:
    """The posterior at X, `b x p x d`, given a local maximum at x_star, `b x d`."""
    hyper, kernel = conditioned.particles.hyper, conditioned.prior.kernel
    at_star = conditioned.moments(x_star[:, None])
    covariance = conditioned.covariance(X, at, x_star[:, None], at_star).squeeze(-1)
    inside = ((x_star > BOUNDARY) & (x_star < 1.0 - BOUNDARY))[:, None].to(covariance.dtype)

    # First and second derivatives at x*, coordinate by coordinate, given the data.
    data_slope, data_curve = conditioned.derivative_kernels(conditioned.X, x_star)  # b x k x n x d
    white_slope, white_curve = conditioned.whitener @ data_slope, conditioned.whitener @ data_curve
    a = conditioned.coefficients[..., None, :]
    slope_mean, curve_mean = ((a @ t).squeeze(-2) for t in (data_slope, data_curve))  # b x k x d
    precision = hyper.lengthscale.square().reciprocal()
    signal = hyper.output_variance[..., None]
    zero = torch.zeros_like(signal)
    slope_prior = signal * radial_slope(kernel, zero) * precision
    curve_prior = 3.0 * signal * radial_curvature(kernel, zero) * precision.square()
    slopes = torch.diag_embed(slope_prior * (1.0 + GRADIENT_SLACK)) - white_slope.mT @ white_slope
    curve_variance = curve_prior - white_curve.square().sum(-2)
    curve_star = -slope_prior - (white_curve.mT @ at_star.whitened).squeeze(-1)
    point_slope, _ = conditioned.derivative_kernels(X, x_star)
    point_slope = point_slope - at.whitened.mT @ white_slope  # b x k x p x d
    star_slope = -(at_star.whitened.mT @ white_slope)  # b x k x 1 x d; k(x*, grad x*) = 0
    curve_slope = -(white_curve.mT @ white_slope)  # b x k x d x d

    # Coordinates on a face drop out: identity block, no covariance, no residual.
    S = slopes * inside[..., :, None] * inside[..., None, :]
    L = linalg.cholesky(S + torch.diag_embed((1.0 - inside).expand_as(slope_prior)))

    def whiten(rows: Tensor) -> Tensor:  # b x k x m x d -> b x k x d x m
        columns = (rows * inside[..., None, :]).mT
        solved: Tensor = torch.linalg.solve_triangular(L, columns, upper=False)
        return solved

    residual = whiten(-slope_mean[..., None, :])  # b x k x d x 1
    at_points, at_optimum, at_curves = (whiten(t) for t in (point_slope, star_slope, curve_slope))
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
    log_flat = log_normal(residual).sum((-1, -2)) - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return Peak(
        conditioned=conditioned,
        X=X,
        whitened=at.whitened,
        mean=at.mean + (at_points * residual).sum(-2),
        variance=(at.variance - at_points.square().sum(-2)).clamp_min(floor),
        removed=at_points,
        covariance=covariance - (at_points * at_optimum).sum(-2),
        star_mean=at_star.mean + (at_optimum * residual).sum(-2),
        star_variance=(at_star.variance - at_optimum.square().sum(-2)).clamp_min(floor),
        log_flat=log_flat,
        curvature=curve_mean + (at_curves * residual).sum(-2),
        curvature_variance=(curve_variance - at_curves.square().sum(-2)).clamp_min(
            VARIANCE_FLOOR * curve_prior
        ),
        curvature_covariance=curve_star - (at_curves * at_optimum).sum(-2),
        inside=inside,
    )
