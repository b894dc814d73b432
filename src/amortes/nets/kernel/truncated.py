"""Truncated moments: f at queries, given each of s optima and f(x) <= f(x*).

What an optimum says is linear in a few combinations of slopes and f at x* and of f at representer
points (`optimum`). The posterior covariance of f(x) with any of these is a prior covariance less a
product of whitened ones, so the combinations can be taken before there is a query:

    column(v) = sum_i k(v, v_i) M_i + k(v, v*) e + g(v, v*) (A v + a) - V' W k_v

in scaled coordinates v, with representer points v_i and the radial slope g of the kernel. There are
r columns for the observations of `optimum`, one for the shift of the mean, and one for the
posterior covariance with f(x*):

    mean(x) = m(x) + column_r,    variance(x) = v(x) - sum_{j < r} column_j^2.

The truncation comes last. With f(x) ~ N(m, v), f(x*) ~ N(m*, v*) and covariance c, the difference
f(x*) - f(x) has the variance g^2 = v + v* - 2c and the standardised mean z = (m* - m) / g. With the
hazard λ and the distance δ = λ + z of a normal cut off at z (`distributions.normal`) and
t = (c - v) / g,

    mean = m + t λ,    variance = v - t^2 λδ.

Gradients are in closed form too: a graph of the same would take three times as long.

Shapes: b datasets, k particles (g = b k), s optima, m representer points, q queries, n
observations, d dimensions, c = r + 2 columns, p = n + m + s points.

References: Tallis, The moment generating function of the truncated multi-normal distribution, JRSS
B 23(1), 1961.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.optimum import GivenOptimum
from amortes.prior.kernels import correlation, radial_curvature, radial_slope

CHUNK = 1 << 18
"""Numbers per temporary: 2 MB in float64."""


@dataclass(frozen=True)
class TruncatedMoments:
    """All that queries need; see the module's docstring."""

    conditioned: Conditioned
    star_mean: Tensor  # b x k x s
    star_variance: Tensor  # b x k x s
    distance: Tensor  # g x (d + 2) x p: (v, |v|^2, 1) times it is r^2 to data, points, x*
    at_points: Tensor  # g x m x (c s), the matrix M
    at_star: Tensor  # g x 1 x c x s, the vector e
    at_slopes: Tensor  # g x (d + 2) x (c s): (v, |v|^2, 1) times it is A v + a
    at_data: Tensor  # g x n x (c s), the matrix -V

    @classmethod
    def of(cls, given: GivenOptimum) -> Self:
        """Of s optima."""
        local, values = given.local, given.values
        conditioned, points = local.conditioned, local.representers.moments
        d, n = local.x.shape[-1], conditioned.X.shape[1]
        combined = values.combinations
        shift = values.pull[..., None, :] @ combined
        with_star = -(values.rows[..., :1, :] @ combined)
        with_star[..., d] += 1.0
        columns = torch.cat([combined, shift, with_star], dim=-2)  # b x k x s x c x (d + 1 + m)
        b, k, s, c, _ = columns.shape
        slopes, star, by_point = columns.tensor_split([d, d + 1], dim=-1)
        at_points = by_point.permute(0, 1, 4, 3, 2).reshape(b * k, -1, c * s)
        at_data = local.white @ -columns[..., : d + 1].mT  # b x k x s x n x c
        at_data = at_data.permute(0, 1, 3, 4, 2).reshape(b * k, n, c * s)
        at_data.baddbmm_(points.whitened.flatten(0, 1), at_points, alpha=-1.0)
        star_V = local.moments.V
        a = -(slopes @ star_V[..., None])  # b x k x s x c x 1
        at_slopes = torch.cat([slopes, torch.zeros_like(a), a], dim=-1)
        P = torch.cat([conditioned.V, points.V, star_V], dim=2).mT  # b x k x d x p
        square = P.square().sum(2, keepdim=True)
        return cls(
            conditioned=conditioned,
            star_mean=values.mean[..., 0],
            star_variance=values.with_star[..., 0].clamp_min(0.0),
            distance=torch.cat([-2.0 * P, torch.ones_like(square), square], dim=2).flatten(0, 1),
            at_points=at_points,
            at_star=star.permute(0, 1, 4, 3, 2).flatten(0, 1).contiguous(),
            at_slopes=at_slopes.permute(0, 1, 4, 3, 2).reshape(b * k, d + 2, c * s),
            at_data=at_data,
        )

    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Means and variances of f at Xq, `b x q x d`.

        Before, `b x k x q`, and given each optimum and f(x) <= f(x*), `b x k x q x s`.
        """
        mean, variance, m, v, with_star = self.moments(Xq)
        star = self.star_mean[:, :, None], self.star_variance[:, :, None]
        floor = VARIANCE_FLOOR * self.conditioned.prior_variance[..., None, None]
        return mean, variance, *truncate(m, v, with_star, *star, floor)

    def moments(self, Xq: Tensor) -> tuple[Tensor, ...]:
        """The same without the last truncation, and the covariance with f(x*), `b x k x q x s`."""
        size = max(8, CHUNK // self.at_points[:, 0].numel())
        V = self.conditioned.scale(Xq)
        parts = [
            _Moments.apply(part, self)  # type: ignore[no-untyped-call]
            for part in V.tensor_split([*range(size, Xq.shape[1], size)], dim=2)
        ]
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return tuple(torch.cat(part, dim=2) for part in zip(*parts, strict=True))


class _Moments(torch.autograd.Function):
    """`TruncatedMoments.moments` at a few queries."""

    @staticmethod
    def forward(ctx: Any, V: Tensor, known: TruncatedMoments) -> tuple[Tensor, ...]:
        conditioned = known.conditioned
        prior, kernel = conditioned.prior, conditioned.prior.kernel
        (b, k, n), q = conditioned.coefficients.shape, V.shape[2]
        c, s = known.at_star.shape[2:]
        signal, rough = conditioned.signal.flatten(0, 1), _flat(conditioned.roughness)
        square = V.square().sum(-1, keepdim=True)
        powers = torch.cat([V, square, torch.ones_like(square)], dim=-1).flatten(0, 1)
        r2 = (powers @ known.distance).clamp_min_(0.0)  # g x q x p
        K = (signal * correlation(kernel, r2, rough)).add_(prior.mean.scale**2)
        slope = signal * radial_slope(kernel, r2[..., -s:], rough)
        whitened = K[..., :n] @ conditioned.whitener.flatten(0, 1).mT  # g x q x n
        mean = prior.mean.loc + K[..., :n] @ conditioned.coefficients.reshape(-1, n, 1)
        total = conditioned.prior_variance.reshape(-1, 1, 1)
        variance = total - whitened.square().sum(-1, keepdim=True)  # g x q x 1
        floor = VARIANCE_FLOOR * total
        columns = torch.bmm(K[..., n:-s], known.at_points).baddbmm_(whitened, known.at_data)
        columns = columns.reshape(b * k, q, c, s)
        lines = torch.bmm(powers, known.at_slopes).reshape(b * k, q, c, s)  # A v + a
        columns.addcmul_(slope[..., None, :], lines).addcmul_(K[..., None, -s:], known.at_star)
        rows, shift, with_star = columns.tensor_split([c - 2, c - 1], dim=2)
        left = variance.clamp_min(floor) - rows.square().sum(2)  # g x q x s
        ctx.known = known
        ctx.save_for_backward(V, r2, slope, whitened, variance, columns, lines, left)
        shape = (b, k, q)
        return (
            mean.reshape(shape),
            variance.clamp_min(floor).reshape(shape),
            (mean + shift.squeeze(2)).reshape(*shape, s),
            left.clamp_min(floor).reshape(*shape, s),
            with_star.reshape(*shape, s),
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        V, r2, slope, whitened, variance, columns, lines, left = ctx.saved_tensors
        known: TruncatedMoments = ctx.known
        conditioned = known.conditioned
        kernel = conditioned.prior.kernel
        b, k, n = conditioned.coefficients.shape
        q, d = V.shape[2:]
        rough = _flat(conditioned.roughness)
        s = columns.shape[-1]
        floor = VARIANCE_FLOOR * conditioned.prior_variance.reshape(-1, 1, 1)
        by_mean, by_variance = (t.reshape(-1, q, 1) for t in grads[:2])
        by_shift, by_left, by_star = (t.reshape(-1, q, s) for t in grads[2:])
        by_left = by_left * (left >= floor)
        by_mean = by_mean + by_shift.sum(-1, keepdim=True)
        by_variance = (by_variance + by_left.sum(-1, keepdim=True)) * (variance >= floor)
        by_columns = columns * (-2.0 * by_left)[:, :, None]
        by_columns[:, :, -2], by_columns[:, :, -1] = by_shift, by_star
        flat = by_columns.flatten(2)
        # Through values of the kernel: at observations, representer points and x*.
        by_white = torch.bmm(flat, known.at_data.mT).addcmul_(whitened, by_variance, value=-2.0)
        by_data = by_white @ conditioned.whitener.flatten(0, 1)
        by_data.addcmul_(by_mean, conditioned.coefficients.reshape(-1, 1, n))
        by_points = torch.bmm(flat, known.at_points.mT)
        by_value = (by_columns * known.at_star).sum(2)
        by_r2 = torch.cat([by_data, by_points, by_value], dim=-1)
        by_r2.mul_(radial_slope(kernel, r2, rough))
        # Through the radial slope at x*, and through A v + a.
        curvature = radial_curvature(kernel, r2[..., -s:], rough)
        by_r2[..., -s:].addcmul_((by_columns * lines).sum(2), curvature)
        by_r2.mul_(-0.5 * conditioned.signal.flatten(0, 1))
        by_lines = by_columns.mul_(slope[..., None, :]).flatten(2)
        by_powers = torch.bmm(by_lines, known.at_slopes.mT)
        by_powers.baddbmm_(by_r2, known.distance.mT)
        by_powers = by_powers.reshape(b, k, q, -1)
        return by_powers[..., :d] + 2.0 * V * by_powers[..., d : d + 1], None


def _flat(roughness: Tensor | None) -> Tensor | None:
    """That of `Conditioned`, with datasets and particles along one axis."""
    return None if roughness is None else roughness.flatten(0, 1)


def truncate(
    mean: Tensor,
    variance: Tensor,
    with_star: Tensor,
    star_mean: Tensor,
    star_variance: Tensor,
    floor: Tensor,
) -> tuple[Tensor, Tensor]:
    """Mean and variance of f(x) given f(x) <= f(x*), for m, v, c of one shape; others broadcast.

    Neither g^2 nor the variance is less than `floor`. What is known of f(x*) gets no gradient.
    """
    found: tuple[Tensor, Tensor] = _Truncate.apply(  # type: ignore[no-untyped-call]
        mean, variance, with_star, star_mean.detach(), star_variance.detach(), floor.detach()
    )
    return found


class _Truncate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, m: Tensor, v: Tensor, c: Tensor, star_mean: Tensor, star_v: Tensor, floor: Tensor
    ) -> tuple[Tensor, Tensor]:
        square = (v + star_v).sub_(c, alpha=2.0)
        gap = square.clamp_min(floor).sqrt_()
        z = (star_mean - m).div_(gap)
        hazard, distance, width = cut_off(z)
        slope = (c - v).div_(gap)
        lost = hazard * distance
        left = torch.addcmul(v, slope.square(), lost, value=-1.0)
        ctx.save_for_backward(square, gap, z, hazard, distance, width, slope, lost, left, floor)
        return torch.addcmul(m, slope, hazard), left.clamp_min(floor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_mean: Tensor, by_variance: Tensor) -> tuple[Tensor | None, ...]:
        square, gap, z, hazard, distance, width, slope, lost, left, floor = ctx.saved_tensors
        by_variance = by_variance * (left >= floor)
        by_slope = by_mean * hazard
        by_slope.addcmul_(by_variance * slope, lost, value=-2.0)
        # dλ/dz = -λδ and d(λδ)/dz = λ (w - δ^2), with the width w of the normal that is left.
        bend = hazard * torch.addcmul(width, distance, distance, value=-1.0)
        by_z = -slope * torch.addcmul(by_mean * lost, by_variance * slope, bend)
        by_m = by_mean - by_z / gap
        by_slope.div_(gap)  # now by c - v
        by_square = (by_z * z / gap).add_(by_slope * slope).div_(gap).mul_(-0.5)
        by_square.mul_(square >= floor)
        by_v = by_variance + by_square - by_slope
        return by_m, by_v, by_slope.sub_(by_square, alpha=2.0), None, None, None
