"""The exact Gaussian-process posterior under known hyperparameters.

    m(x) = mu + k_x^T (K + s^2 I)^-1 (y - mu),    v(x) = k_xx - k_x^T (K + s^2 I)^-1 k_x

(Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.25-2.26.)
"""

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import Hyperparameters, Kernel
from amortes.prior.kernels import covariance


def exact_posterior(
    kernel: Kernel, hyper: Hyperparameters, X: Tensor, y: Tensor, Xq: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and variance of the noise-free f at `Xq`.

    Shapes: hyper `b`, X `b x n x d`, y `b x n`, Xq `b x q x d`; returns two `b x q`. All in the
    dtype of X, which should be float64.
    """
    K = covariance(kernel, hyper, X, X)
    K.diagonal(dim1=-2, dim2=-1).add_(hyper.noise_sd.square()[..., None])
    L = linalg.cholesky(K)
    A = torch.linalg.solve_triangular(L, covariance(kernel, hyper, X, Xq), upper=False)
    residual = (y - hyper.mean[..., None]).unsqueeze(-1)
    r = torch.linalg.solve_triangular(L, residual, upper=False)
    mean = hyper.mean[..., None] + (A.mT @ r).squeeze(-1)
    variance = hyper.output_variance[..., None] - A.square().sum(-2)
    return mean, variance.clamp_min(1e-12)
