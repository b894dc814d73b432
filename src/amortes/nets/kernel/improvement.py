"""How much better a query may be than a point x: moments of f(q) - f(x), and their gradient.

With k the prior covariances of a query with the n observations, w = W k (see `conditioning`), and
those of x,

    mean      a' k - m(x)
    variance  v - w'w + v(x) - 2 (k(q, x) - w_x' w)

whose derivatives by k are a and 2 (W' w_x - W' w), and by k(q, x) 0 and -2. In scaled coordinates
dk_i / dq = -s_i (q - v_i) with the radial slope s, so a gradient takes two products of matrices.
A search climbs along some ten of them; by automatic differentiation each took twice as long.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.prior.kernels import square_distance, value_and_slope


def improvement(conditioned: Conditioned, Xq: Tensor, at_x: Moments) -> tuple[Tensor, Tensor]:
    """Mean and variance of f(Xq) - f(x), Xq `b x q x d`, x one point: `b x k x q` each."""
    found: tuple[Tensor, Tensor] = _Improvement.apply(  # type: ignore[no-untyped-call]
        Xq, conditioned, at_x
    )
    return found


class _Improvement(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, Xq: Tensor, conditioned: Conditioned, at_x: Moments
    ) -> tuple[Tensor, Tensor]:
        n = conditioned.V.shape[-2]
        V, known = conditioned.scale(Xq), torch.cat([conditioned.V, at_x.V], dim=-2)
        r2 = square_distance(known, V)  # b x k x (n + 1) x q
        value, slope = value_and_slope(conditioned.prior.kernel, r2, conditioned.roughness)
        K = conditioned.signal * value + conditioned.prior.mean.scale**2
        at_q = conditioned.moments_given(K[..., :n, :], V)
        shared = K[..., n, :] - (at_x.whitened.mT @ at_q.whitened).squeeze(-2)
        floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
        variance = at_q.variance + at_x.variance - 2.0 * shared
        ctx.conditioned, ctx.at_x = conditioned, at_x
        ctx.save_for_backward(Xq, V, known, slope, at_q.whitened, variance > floor)
        return at_q.mean - at_x.mean, variance.clamp_min(floor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_mean: Tensor, by_variance: Tensor) -> tuple[Tensor, None, None]:
        conditioned: Conditioned = ctx.conditioned
        Xq, V, known, slope, whitened, free = ctx.saved_tensors
        by_mean, by_variance = by_mean[..., None, :], (2.0 * by_variance * free)[..., None, :]
        by_k = conditioned.whitener.mT @ (ctx.at_x.whitened - whitened)  # b x k x n x q
        by_k.mul_(by_variance).add_(conditioned.coefficients[..., None] * by_mean)
        by_K = torch.cat([by_k, -by_variance], dim=-2)
        pull = by_K.mul_(slope).mul_(conditioned.signal)  # b x k x (n + 1) x q
        by_V = pull.mT @ known - pull.sum(-2)[..., None] * V
        return (by_V * conditioned.log_stretch(Xq).exp()).sum(1), None, None
