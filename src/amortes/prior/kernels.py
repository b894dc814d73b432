"""Stationary covariance functions with one lengthscale per dimension.

With r^2 = sum_k (x_k - x'_k)^2 / l_k^2:

    se        exp(-r^2 / 2)
    matern52  (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)
"""

import math

import torch
from torch import Tensor

from amortes.prior.gp import Hyperparameters, Kernel


def scaled_square_distance(X1: Tensor, X2: Tensor, lengthscale: Tensor) -> Tensor:
    """r^2 between `... x n1 x d` and `... x n2 x d`, lengthscales `... x d`: `... x n1 x n2`."""
    A = X1 / lengthscale.unsqueeze(-2)
    B = X2 / lengthscale.unsqueeze(-2)
    # |a - b|^2 = (-2a, |a|^2, 1) . (b, 1, |b|^2): one matrix product, as fast as memory allows.
    A = torch.cat([-2 * A, A.square().sum(-1, keepdim=True), torch.ones_like(A[..., :1])], dim=-1)
    B = torch.cat([B, torch.ones_like(B[..., :1]), B.square().sum(-1, keepdim=True)], dim=-1)
    return (A @ B.mT).clamp_min_(0.0)


def correlation(kernel: Kernel, square_distance: Tensor) -> Tensor:
    """The kernel at unit output variance as a function of r^2 (any shape)."""
    if kernel == "se":
        return (-0.5 * square_distance).exp_()
    # The floor keeps the gradient of the square root finite at r = 0.
    r = (5.0 * square_distance).clamp_min(1e-30).sqrt()
    return (1.0 + r + r.square() / 3.0) * (-r).exp()


def radial_slope(kernel: Kernel, square_distance: Tensor) -> Tensor:
    """w(r^2) = -2 dk/d(r^2) at unit output variance.

    It gives derivatives by lengthscales, dk/d log l_k = w (x_k - x'_k)^2 / l_k^2, and covariances
    with derivatives of f: cov(f(x), df(x')/dx'_k) = w (x_k - x'_k) / l_k^2, and
    var(df/dx_k) = w(0) / l_k^2.
    """
    if kernel == "se":
        return correlation(kernel, square_distance)
    r = (5.0 * square_distance).clamp_min(1e-30).sqrt()
    return 5.0 / 3.0 * (1.0 + r) * (-r).exp()


def value_and_slope(kernel: Kernel, square_distance: Tensor) -> tuple[Tensor, Tensor]:
    """`correlation` and `radial_slope`: for the squared exponential one and the same tensor."""
    value = correlation(kernel, square_distance)
    return value, value if kernel == "se" else radial_slope(kernel, square_distance)


def radial_curvature(kernel: Kernel, square_distance: Tensor) -> Tensor:
    """v(r^2) = -2 dw/d(r^2), with w of `radial_slope`.

    It gives covariances with second derivatives of f: cov(f(x), d2f(x')/dx'_k^2) =
    v (x_k - x'_k)^2 / l_k^4 - w / l_k^2, and var(d2f/dx_k^2) = 3 v(0) / l_k^4.
    """
    if kernel == "se":
        return correlation(kernel, square_distance)
    r = (5.0 * square_distance).clamp_min(1e-30).sqrt()
    return 25.0 / 3.0 * (-r).exp()


def covariance(kernel: Kernel, hyper: Hyperparameters, X1: Tensor, X2: Tensor) -> Tensor:
    """Prior covariance of f between `... x n1 x d` and `... x n2 x d`: `... x n1 x n2`."""
    r2 = scaled_square_distance(X1, X2, hyper.lengthscale)
    return hyper.output_variance[..., None, None] * correlation(kernel, r2)


SPECTRAL_DEGREES_OF_FREEDOM = {"se": math.inf, "matern52": 5.0}
"""Spectral density of each kernel: multivariate Student-t with so many degrees of freedom."""
