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
    return (A @ B.mT).clamp_min(0.0)


def correlation(kernel: Kernel, square_distance: Tensor) -> Tensor:
    """The kernel at unit output variance as a function of r^2 (any shape)."""
    if kernel == "se":
        return (-0.5 * square_distance).exp()
    # The floor keeps the gradient of the square root finite at r = 0.
    r = (5.0 * square_distance).clamp_min(1e-30).sqrt()
    return (1.0 + r + r.square() / 3.0) * (-r).exp()


def covariance(kernel: Kernel, hyper: Hyperparameters, X1: Tensor, X2: Tensor) -> Tensor:
    """Prior covariance of f between `... x n1 x d` and `... x n2 x d`: `... x n1 x n2`."""
    r2 = scaled_square_distance(X1, X2, hyper.lengthscale)
    return hyper.output_variance[..., None, None] * correlation(kernel, r2)


SPECTRAL_DEGREES_OF_FREEDOM = {"se": math.inf, "matern52": 5.0}
"""Spectral density of each kernel: multivariate Student-t with so many degrees of freedom."""
