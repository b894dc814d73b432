"""Stationary covariance functions with one lengthscale per dimension.

With r^2 = sum_k (u_k - u'_k)^2 / l_k^2, u being the (warped) coordinates:

    se        exp(-r^2 / 2)
    matern52  (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)
    mixed     (1 - rho) se + rho matern52, rho being the roughness

Points are scaled first: warped, then divided by lengthscales. In scaled coordinates v all
derivatives are radial: with w = -2 dk/d(r^2) and c = -2 dw/d(r^2),

    cov(f(v), df(v')/dv'_k)     = w (v_k - v'_k)                    var(df/dv_k)     = w(0)
    cov(f(v), d2f(v')/dv'_k^2)  = c (v_k - v'_k)^2 - w              var(d2f/dv_k^2)  = 3 c(0)
    dk/d log l_k                = w (v_k - v'_k)^2
"""

import math
from typing import Any

import torch
from torch import Tensor

from amortes.prior.gp import Hyperparameters, Kernel
from amortes.prior.warp import warp

SPECTRAL_DEGREES_OF_FREEDOM: dict[Kernel, float] = {"se": math.inf, "matern52": 5.0}
"""Spectral density of each kernel: multivariate Student-t with so many degrees of freedom."""


def scaled(hyper: Hyperparameters, X: Tensor) -> Tensor:
    """Scaled coordinates of X, `... x n x d`, under hyperparameters `...`."""
    U = X if hyper.warp is None else warp(X, hyper.warp)
    return U / hyper.lengthscale.unsqueeze(-2)


def square_distance(V1: Tensor, V2: Tensor) -> Tensor:
    """r^2 between scaled points, `... x n1 x d` and `... x n2 x d`: `... x n1 x n2`."""
    # |a - b|^2 = (-2a, |a|^2, 1) . (b, 1, |b|^2): one matrix product, as fast as memory allows.
    one1, one2 = torch.ones_like(V1[..., :1]), torch.ones_like(V2[..., :1])
    A = torch.cat([-2 * V1, V1.square().sum(-1, keepdim=True), one1], dim=-1)
    B = torch.cat([V2, one2, V2.square().sum(-1, keepdim=True)], dim=-1)
    return (A @ B.mT).clamp_min_(0.0)


def correlation(kernel: Kernel, r2: Tensor, roughness: Tensor | None = None) -> Tensor:
    """The kernel at unit output variance as a function of r^2; roughness broadcasts to r^2."""
    if kernel == "se":
        return (-0.5 * r2).exp_()
    if torch.is_grad_enabled() and r2.requires_grad:
        value: Tensor = _Differentiable.apply(kernel, r2, roughness)  # type: ignore[no-untyped-call]
        return value
    # In place: large temporaries take longer to allocate than to compute.
    r = (5.0 * r2).sqrt_()
    rough = (5.0 / 3.0 * r2).add_(r).add_(1.0)
    return _mixed(kernel, rough.mul_(r.neg_().exp_()), r2, roughness)


class _Differentiable(torch.autograd.Function):
    """The correlation with its slope: one operation backwards instead of ten."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, r2: Tensor, roughness: Tensor | None) -> Tensor:
        value, slope = value_and_slope(kernel, r2, roughness)
        by_roughness = None
        if roughness is not None and roughness.requires_grad:
            by_roughness = correlation("matern52", r2) - correlation("se", r2)
        ctx.kernel = kernel
        ctx.save_for_backward(r2, slope, by_roughness, roughness)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor | None]:
        r2, slope, by_roughness, roughness = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants second derivatives
            slope = radial_slope(ctx.kernel, r2, roughness)
        by_r2 = -0.5 * slope * gradient
        if by_roughness is None:
            return None, by_r2, None
        return None, by_r2, (by_roughness * gradient).sum_to_size(roughness.shape)


def radial_slope(kernel: Kernel, r2: Tensor, roughness: Tensor | None = None) -> Tensor:
    """w(r^2) = -2 dk/d(r^2) at unit output variance."""
    if kernel == "se":
        return correlation(kernel, r2)
    r, decay = _matern(r2)
    return _mixed(kernel, 5.0 / 3.0 * (1.0 + r) * decay, r2, roughness)


def radial_curvature(kernel: Kernel, r2: Tensor, roughness: Tensor | None = None) -> Tensor:
    """c(r^2) = -2 dw/d(r^2), with w of `radial_slope`."""
    if kernel == "se":
        return correlation(kernel, r2)
    _, decay = _matern(r2)
    return _mixed(kernel, 25.0 / 3.0 * decay, r2, roughness)


def value_and_slope(
    kernel: Kernel, r2: Tensor, roughness: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`correlation` and `radial_slope`, in less time than one after the other."""
    if kernel == "se":
        value = correlation(kernel, r2)
        return value, value
    r, decay = _matern(r2)
    slope = 5.0 / 3.0 * (1.0 + r) * decay
    value = (1.0 + r + r.square() / 3.0) * decay
    if kernel == "matern52":
        return value, slope
    assert roughness is not None
    smooth = (-0.5 * r2).exp_()
    return smooth.lerp(value, roughness), smooth.lerp(slope, roughness)


def covariance(kernel: Kernel, hyper: Hyperparameters, X1: Tensor, X2: Tensor) -> Tensor:
    """Prior covariance of f between `... x n1 x d` and `... x n2 x d`: `... x n1 x n2`."""
    r2 = square_distance(scaled(hyper, X1), scaled(hyper, X2))
    roughness = None if hyper.roughness is None else hyper.roughness[..., None, None]
    return hyper.output_variance[..., None, None] * correlation(kernel, r2, roughness)


def _matern(r2: Tensor) -> tuple[Tensor, Tensor]:
    """sqrt(5) r and its exponential decay; the floor keeps gradients finite at r = 0."""
    r = (5.0 * r2).clamp_min(1e-30).sqrt()
    return r, (-r).exp()


def _mixed(kernel: Kernel, rough: Tensor, r2: Tensor, roughness: Tensor | None) -> Tensor:
    """The Matern part `rough` alone, or mixed with the squared exponential."""
    if kernel == "matern52":
        return rough
    assert roughness is not None
    return (-0.5 * r2).exp_().lerp(rough, roughness.expand_as(r2))
