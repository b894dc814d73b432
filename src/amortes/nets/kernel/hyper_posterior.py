"""The log posterior of Gaussian-process hyperparameters, with its slope and curvature.

In the prior's standard normal coordinates z (log lengthscales, log output variance, log noise; the
constant mean is integrated out exactly), that of one dataset is

    L(z) = log N(y; m0, K(z) + t^2 11' + s(z)^2 I) - |z|^2 / 2,

    gradient             g_i = (a' dK_i a - tr(K^-1 dK_i)) / 2 - z_i,   a = K^-1 (y - m0),
    Fisher               F_ij = tr(K^-1 dK_i K^-1 dK_j) / 2 + [i = j],
    average information  A_ij = a' dK_i K^-1 dK_j a / 2 + [i = j].

The expectation of A is F, and it takes no products of matrices (Gilmour, Thompson & Cullis, 1995,
Biometrics 51). From a few points it is another matter than F, and serves datasets with many.
"""

import math
from functools import cached_property

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.kernels import correlation, scaled_square_distance, value_and_slope

# Points above which the average information stands for the Fisher matrix.
MANY = 64


class HyperPosterior:
    """Log posterior of the latent z for a batch of datasets, with gradient and Fisher matrix."""

    def __init__(self, prior: GPPrior, X: Tensor, y: Tensor) -> None:
        self.prior, self.X, self._y = prior, X, y  # b x n x d, b x n
        self.b, self.n, self.d = X.shape
        self.residual = (y - prior.mean.loc)[..., None]  # b x n x 1
        self.constant = 0.5 * self.n * math.log(2.0 * math.pi)
        self.scales = torch.tensor(
            [prior.lengthscale.scale] * self.d
            + [prior.output_variance.scale, prior.noise_sd.scale],
            dtype=X.dtype,
        )

    def rows(self, index: Tensor) -> "HyperPosterior":
        """That of some of the datasets."""
        return HyperPosterior(self.prior, self.X[index], self._y[index])

    @cached_property
    def square_differences(self) -> Tensor:
        """Of all pairs of points i, j along each coordinate k: `b x n (i) x d (k) x n (j)`."""
        return (self.X[..., None] - self.X.mT[:, None]).square_()

    def hyperparameters(self, z: Tensor) -> Hyperparameters:
        """Hyperparameters at z, `... x (d + 2)`, with the mean at its prior location."""
        return self.prior.hyperparameters(torch.cat([z, torch.zeros_like(z[..., :1])], -1), self.d)

    def root(self, z: Tensor) -> Tensor:
        """Cholesky factors of K + t^2 11' + s^2 I at z, `b x k x (d + 2)`: `b x k x n x n`."""
        hyper = self.hyperparameters(z)
        return linalg.cholesky(observed_covariance(self.prior, hyper, self.X[:, None]))

    def log_density(self, z: Tensor, root: Tensor | None = None) -> Tensor:
        """L(z) for z, `b x k x (d + 2)`: `b x k`; `root` is that at z."""
        L = self.root(z) if root is None else root
        r: Tensor = torch.linalg.solve_triangular(
            L, self.residual[:, None].expand(*L.shape[:-1], 1), upper=False
        )
        log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (r.square().sum((-1, -2)) + z.square().sum(-1)) - log_det - self.constant

    def derivatives(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, its gradient, and the Fisher matrix or average information at z, `b x (d + 2)`."""
        hyper = self.hyperparameters(z)
        precision = hyper.lengthscale.square().reciprocal()
        r2 = (precision[:, None, None] @ self.square_differences).squeeze(-2)
        output_variance = hyper.output_variance[:, None, None]
        signal, slope = (output_variance * t for t in value_and_slope(self.prior.kernel, r2))
        noise = hyper.noise_sd.square()[:, None]
        L = linalg.cholesky(add_mean_and_noise(self.prior, noise, signal.clone()))
        K_inv = torch.cholesky_inverse(L)
        a = K_inv @ self.residual  # b x n x 1
        value = (
            -0.5 * (self.residual * a).sum((-1, -2))
            - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - 0.5 * z.square().sum(-1)
            - self.constant
        )
        # dK is slope (x_k - x'_k)^2 by log l_k, the signal by log output variance, and I by log s,
        # each times `factor`. Both sums over its columns at once: with a, and for the gradient.
        factor = self.scales * torch.cat([precision, torch.ones_like(noise), 2 * noise], dim=1)
        excess = a * a.mT - K_inv
        sums = self.square_differences @ torch.stack([slope * a.mT, slope * excess], dim=-1)
        by_signal = (signal * excess).sum((-1, -2))
        by_noise = excess.diagonal(dim1=-2, dim2=-1).sum(-1)
        others = torch.stack([by_signal, by_noise], dim=-1)
        gradient = 0.5 * factor * torch.cat([sums[..., 1].sum(1), others], dim=-1) - z
        if self.n > MANY:
            columns = torch.cat([sums[..., 0], signal @ a, a], dim=-1)  # dK a: b x n x (d + 2)
            white = torch.linalg.solve_triangular(L, columns, upper=False)
            products = white.mT @ white
        else:
            dK = slope[:, None] * self.square_differences.transpose(1, 2)
            dK = torch.cat([dK, signal[:, None]], dim=1)  # b x (d + 1) x n x n
            # All are symmetric: this is K^-1 dK, transposed.
            A = (dK.flatten(1, 2) @ K_inv).reshape(dK.shape)
            A = torch.cat([A, K_inv[:, None]], dim=1)
            products = A.flatten(2) @ A.mT.flatten(2).mT
        information = 0.5 * factor[:, :, None] * factor[:, None] * products
        information.diagonal(dim1=-2, dim2=-1).add_(1.0)
        return value, gradient, _definite(information)


def _definite(information: Tensor) -> Tensor:
    """The matrices, with the eigenvalues of those that rounding made indefinite at least one."""
    if not bool(torch.linalg.cholesky_ex(information).info.any()):
        return information
    values, vectors = torch.linalg.eigh(information)
    low = values.amin(-1) <= 0.0
    mended = vectors @ (values.clamp_min(1.0)[..., None] * vectors.mT)
    return torch.where(low[:, None, None], mended, information)


def add_mean_and_noise(prior: GPPrior, noise: Tensor, K: Tensor) -> Tensor:
    """Covariance of observations, from that of the signal in the same memory: K + t^2 11' + s^2 I.

    The mean is integrated out. The noise variances s^2 are `... x 1`.
    """
    K.add_(prior.mean.scale**2).diagonal(dim1=-2, dim2=-1).add_(noise)
    return K


def observed_covariance(prior: GPPrior, hyper: Hyperparameters, X: Tensor) -> Tensor:
    """Covariance of observations at X, `... x n x d`, under hyperparameters `...`."""
    r2 = scaled_square_distance(X, X, hyper.lengthscale)
    signal = hyper.output_variance[..., None, None] * correlation(prior.kernel, r2)
    return add_mean_and_noise(prior, hyper.noise_sd.square()[..., None], signal)
