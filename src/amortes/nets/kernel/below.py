"""Moments of f(x) given that it is at most f(x*), with their gradients in closed form.

With f(x) ~ N(m, v), f(x*) ~ N(m*, v*) and covariance c, the gap f(x*) - f(x) has the variance
g^2 = v + v* - 2c and the standardised mean z = (m* - m) / g. With the hazard λ and the distance
δ = λ + z of a normal cut off at z (`distributions.normal`) and t = (c - v) / g,

    mean = m + t λ,    variance = v - t^2 λδ.

References: Tallis, The moment generating function of the truncated multi-normal distribution,
JRSS B 23(1), 1961.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.nets.distributions.normal import cut_off


def below(
    mean: Tensor,
    variance: Tensor,
    with_star: Tensor,
    star_mean: Tensor,
    star_variance: Tensor,
    floor: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of f(x), and z, for m, v, c of one shape; the others broadcast to it.

    Neither g^2 nor the variance is less than `floor`. What is known of f(x*) gets no gradient.
    """
    found: tuple[Tensor, Tensor, Tensor] = _Below.apply(  # type: ignore[no-untyped-call]
        mean, variance, with_star, star_mean.detach(), star_variance.detach(), floor.detach()
    )
    return found


class _Below(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, m: Tensor, v: Tensor, c: Tensor, star_mean: Tensor, star_v: Tensor, floor: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = (v + star_v).sub_(c, alpha=2.0)
        gap = square.clamp_min(floor).sqrt_()
        z = (star_mean - m).div_(gap)
        hazard, distance, width = cut_off(z)
        slope = (c - v).div_(gap)
        lost = hazard * distance
        left = torch.addcmul(v, slope.square(), lost, value=-1.0)
        ctx.save_for_backward(square, gap, z, hazard, distance, width, slope, lost, left, floor)
        return torch.addcmul(m, slope, hazard), left.clamp_min(floor), z

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_mean: Tensor, by_variance: Tensor, by_z: Tensor
    ) -> tuple[Tensor | None, ...]:
        square, gap, z, hazard, distance, width, slope, lost, left, floor = ctx.saved_tensors
        by_variance = by_variance * (left >= floor)
        by_slope = by_mean * hazard
        by_slope.addcmul_(by_variance * slope, lost, value=-2.0)
        # dλ/dz = -λδ and d(λδ)/dz = λ (w - δ^2), with the width w of the normal that is left.
        bend = hazard * torch.addcmul(width, distance, distance, value=-1.0)
        by_z = by_z - slope * torch.addcmul(by_mean * lost, by_variance * slope, bend)
        by_m = by_mean - by_z / gap
        by_slope.div_(gap)  # now by c - v
        by_square = (by_z * z / gap).add_(by_slope * slope).div_(gap).mul_(-0.5)
        by_square.mul_(square >= floor)
        by_v = by_variance + by_square - by_slope
        return by_m, by_v, by_slope.sub_(by_square, alpha=2.0), None, None, None
