"""The log posterior of Gaussian-process hyperparameters, with its slope and curvature.

In the prior's standard normal coordinates z (log lengthscales, log output variance, log noise; the
constant mean is integrated out exactly), that of one dataset is

    L(z) = log N(y; m0, K(z) + t^2 11' + s(z)^2 I) - |z|^2 / 2,

    gradient  g_i = (a' dK_i a - tr(K^-1 dK_i)) / 2 - z_i,   a = K^-1 (y - m0),
    Fisher    F_ij = tr(K^-1 dK_i K^-1 dK_j) / 2 + [i = j].
"""

from functools import cached_property

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.kernels import correlation, scaled_square_distance, value_and_slope


class HyperPosterior:
    """Log posterior of the latent z for a batch of datasets, with gradient and Fisher matrix."""

    def __init__(self, prior: GPPrior, X: Tensor, y: Tensor) -> None:
        self.prior, self.X, self._y = prior, X, y  # b x n x d, b x n
        self.b, self.n, self.d = X.shape
        self.residual = (y - prior.mean.loc)[..., None]  # b x n x 1
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
        """Of all pairs of points along each coordinate: `b x d x n x n`."""
        coordinates = self.X.mT  # b x d x n
        return (coordinates[..., :, None] - coordinates[..., None, :]).square_()

    @cached_property
    def _buffers(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the derivatives need at every step: memory that is fresh each time is slow.

        By an output variance that is known they are multiplied by zero, and can be anything.
        """
        dK = self.X.new_zeros(self.b, self.d + 1, self.n, self.n)
        A, A_transposed = self.X.new_zeros(2, self.b, self.d + 2, self.n, self.n)
        return dK, A, A_transposed

    def hyperparameters(self, z: Tensor) -> Hyperparameters:
        """Hyperparameters at z, `... x (d + 2)`, with the mean at its prior location."""
        return self.prior.hyperparameters(torch.cat([z, torch.zeros_like(z[..., :1])], -1), self.d)

    def root(self, z: Tensor) -> Tensor:
        """Cholesky factors of K + t^2 11' + s^2 I at z, `b x k x (d + 2)`: `b x k x n x n`."""
        hyper = self.hyperparameters(z)
        return linalg.cholesky(observed_covariance(self.prior, hyper, self.X[:, None]))

    def log_density(self, z: Tensor, root: Tensor | None = None) -> Tensor:
        """L(z) up to a constant for z, `b x k x (d + 2)`: `b x k`; `root` is that at z."""
        L = self.root(z) if root is None else root
        r: Tensor = torch.linalg.solve_triangular(
            L, self.residual[:, None].expand(*L.shape[:-1], 1), upper=False
        )
        log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * r.square().sum((-1, -2)) - log_det - 0.5 * z.square().sum(-1)

    def derivatives(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, its gradient and the Fisher matrix at z, `b x (d + 2)`."""
        hyper = self.hyperparameters(z)
        precision = hyper.lengthscale.square().reciprocal()
        r2 = (precision[:, None] @ self.square_differences.flatten(2)).reshape(-1, self.n, self.n)
        output_variance = hyper.output_variance[:, None, None]
        signal, slope = (output_variance * t for t in value_and_slope(self.prior.kernel, r2))
        noise = hyper.noise_sd.square()[:, None]
        L = linalg.cholesky(with_mean_and_noise(self.prior, noise, signal))
        K_inv = torch.cholesky_inverse(L)
        a = K_inv @ self.residual  # b x n x 1
        # dK is slope (x_k - x'_k)^2 / l_k^2 by log l_k, the signal by log output variance, and
        # 2 s^2 I by log s. The scalar factors are applied to the results, not to the matrices.
        dK, A, A_transposed = self._buffers
        varied = self.d + (self.prior.output_variance.scale > 0)
        torch.mul(slope[:, None], self.square_differences, out=dK[:, :-1])
        dK[:, -1] = signal
        # All are symmetric: this is K^-1 dK, transposed.
        torch.bmm(dK[:, :varied].flatten(1, 2), K_inv, out=A[:, :varied].flatten(1, 2))
        A[:, -1] = K_inv
        factor = self.scales * torch.cat([precision, torch.ones_like(noise), 2 * noise], dim=1)
        quadratic = torch.cat(
            [(a.mT[:, None] @ dK @ a[:, None]).flatten(1), a.square().sum(1)], dim=1
        )
        transposed = A_transposed.copy_(A.mT).flatten(2)
        trace = A.diagonal(dim1=-2, dim2=-1).sum(-1)
        gradient = 0.5 * factor * (quadratic - trace) - z
        fisher = 0.5 * factor[:, :, None] * factor[:, None] * (A.flatten(2) @ transposed.mT)
        fisher.diagonal(dim1=-2, dim2=-1).add_(1.0)
        fisher = _definite(fisher)
        value = (
            -0.5 * (self.residual * a).sum((-1, -2))
            - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - 0.5 * z.square().sum(-1)
        )
        return value, gradient, fisher


def _definite(fisher: Tensor) -> Tensor:
    """The matrices, with the eigenvalues of those that rounding made indefinite at least one."""
    if not bool(torch.linalg.cholesky_ex(fisher).info.any()):
        return fisher
    values, vectors = torch.linalg.eigh(fisher)
    low = values.amin(-1) <= 0.0
    mended = vectors @ (values.clamp_min(1.0)[..., None] * vectors.mT)
    return torch.where(low[:, None, None], mended, fisher)


def with_mean_and_noise(prior: GPPrior, noise: Tensor, signal: Tensor) -> Tensor:
    """Covariance of observations: signal + t^2 11' + s^2 I, the mean integrated out.

    The noise variances s^2 are `... x 1`.
    """
    K = signal + prior.mean.scale**2
    K.diagonal(dim1=-2, dim2=-1).add_(noise)
    return K


def observed_covariance(prior: GPPrior, hyper: Hyperparameters, X: Tensor) -> Tensor:
    """Covariance of observations at X, `... x n x d`, under hyperparameters `...`."""
    r2 = scaled_square_distance(X, X, hyper.lengthscale)
    signal = hyper.output_variance[..., None, None] * correlation(prior.kernel, r2)
    return with_mean_and_noise(prior, hyper.noise_sd.square()[..., None], signal)
