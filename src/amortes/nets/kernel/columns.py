"""f at queries, before and after each of s hints, in a few matrix products for all of them.

What a hint says is linear in a few directions of f (`known`), each a combination of slopes and f at
x* and of f at rivals. The posterior covariance of f(x) with any of these is a prior covariance less
a product of whitened ones, so the combinations can be taken before there is a query:

    column(v) = sum_i k(v, rival_i) M_i + k(v, v*) e + g(v, v*) (A v + a) - V' W k_v

in scaled coordinates v, with the radial slope g of the kernel. There are r columns for the rows of
`known`, one for the shift of the mean, row(x) . pull, and one for the posterior covariance with
f(x*):

    mean(x) = m(x) + column_r,    variance(x) = v(x) - sum_{j < r} column_j^2.

The gradient in v is in closed form too: a graph of the same would take three times as long.

Shapes: b datasets, k particles (g = b k), s hints, m rivals, q queries, n observations, d
dimensions, c = r + 2 columns, p = n + m + s points.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.known import Known, Places
from amortes.nets.kernel.rivals import Rivals
from amortes.prior.kernels import correlation, radial_curvature, radial_slope

CHUNK = 1 << 18
"""Numbers per temporary: 2 MB in float64."""


@dataclass(frozen=True)
class Columns:
    """All that queries need; see the module's docstring."""

    conditioned: Conditioned
    distance: Tensor  # g x (d + 2) x p: (v, |v|^2, 1) times it is r^2 to data, rivals, x*
    at_rivals: Tensor  # g x m x (c s), the matrix M
    at_star: Tensor  # g x 1 x c x s, the vector e
    at_slopes: Tensor  # g x (d + 2) x (c s): (v, |v|^2, 1) times it is A v + a
    at_data: Tensor  # g x n x (c s), the matrix -V

    @classmethod
    def of(cls, places: Places, known: Known, rivals: Rivals) -> Self:
        """Of hints at `places`, whose rivals are these."""
        conditioned, x = places.conditioned, places.x
        (s, d), n = x.shape[1:], conditioned.X.shape[1]
        shift = known.pull[..., None, :] @ known.mix
        with_star = -(known.star_rows[..., None, :] @ known.mix)
        with_star[..., d] += 1.0
        mix = torch.cat([known.mix, shift, with_star], dim=-2)  # b x k x s x c x (d + 2 + met)
        b, k, _, c, _ = mix.shape
        slopes, star, highest, met = mix.tensor_split([d, d + 1, d + 2], dim=-1)
        by_rival = (highest * known.share[:, :, None, None]).scatter_add(
            4, known.met[:, :, :, None].expand_as(met), met
        )
        at_rivals = by_rival.permute(0, 1, 4, 3, 2).reshape(b * k, -1, c * s)
        at_data = places.white_by_place @ -mix[..., : d + 1].mT  # b x k x s x n x c
        at_data = at_data.permute(0, 1, 3, 4, 2).reshape(b * k, n, c * s)
        at_data.baddbmm_(rivals.moments.whitened.flatten(0, 1), at_rivals, alpha=-1.0)
        star_V = places.moments.V
        a = -(slopes @ star_V[..., None])  # b x k x s x c x 1
        at_slopes = torch.cat([slopes, torch.zeros_like(a), a], dim=-1)
        points = torch.cat([conditioned.V, rivals.moments.V, star_V], dim=2)
        return cls(
            conditioned=conditioned,
            distance=_distance(points),
            at_rivals=at_rivals,
            at_star=star.permute(0, 1, 4, 3, 2).flatten(0, 1).contiguous(),
            at_slopes=at_slopes.permute(0, 1, 4, 3, 2).reshape(b * k, d + 2, c * s),
            at_data=at_data,
        )

    def moments(self, Xq: Tensor) -> tuple[Tensor, ...]:
        """At Xq, `b x q x d`: mean and variance of f before any hint, `b x k x q`, then given each
        mean, variance and covariance with f(x*), `b x k x q x s`.
        """
        size = max(8, CHUNK // self.at_rivals[:, 0].numel())
        V = self.conditioned.scale(Xq)
        parts = [
            _Moments.apply(part, self)  # type: ignore[no-untyped-call]
            for part in V.tensor_split([*range(size, Xq.shape[1], size)], dim=2)
        ]
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return tuple(torch.cat(part, dim=2) for part in zip(*parts, strict=True))


def _distance(V: Tensor) -> Tensor:
    """Matrices that turn (v, |v|^2, 1) into r^2 to V, `b x k x p x d`: `(b k) x (d + 2) x p`."""
    P = V.mT  # b x k x d x p
    square = P.square().sum(2, keepdim=True)
    return torch.cat([-2.0 * P, torch.ones_like(square), square], dim=2).flatten(0, 1)


class _Moments(torch.autograd.Function):
    """`Columns.moments` at a few queries."""

    @staticmethod
    def forward(ctx: Any, V: Tensor, known: Columns) -> tuple[Tensor, ...]:
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
        columns = torch.bmm(K[..., n:-s], known.at_rivals).baddbmm_(whitened, known.at_data)
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
        known: Columns = ctx.known
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
        # Through values of the kernel: at observations, rivals and x*.
        by_white = torch.bmm(flat, known.at_data.mT).addcmul_(whitened, by_variance, value=-2.0)
        by_data = by_white @ conditioned.whitener.flatten(0, 1)
        by_data.addcmul_(by_mean, conditioned.coefficients.reshape(-1, 1, n))
        by_rivals = torch.bmm(flat, known.at_rivals.mT)
        by_value = (by_columns * known.at_star).sum(2)
        by_r2 = torch.cat([by_data, by_rivals, by_value], dim=-1)
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
