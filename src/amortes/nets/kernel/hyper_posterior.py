"""The posterior density of Gaussian-process hyperparameters, its gradient and information.

With z the standard normal coordinates of the prior (the constant mean integrated out),

    L(z) = log p(y | X, z) - |z|^2 / 2,    y ~ N(m0, K + t^2 11' + s^2 I),

and a = C^-1 (y - m0), C being the covariance of y, the gradient along a coordinate that changes C
by dC is tr((a a' - C^-1) dC) / 2, the Fisher matrix tr(C^-1 dC_i C^-1 dC_j) / 2, and the average
information (dC_i a)' C^-1 (dC_j a) / 2 (Gilmour, Thompson & Cullis, 1995, Biometrics 51), both plus
I of the prior. The latter needs no products of matrices and serves above `MANY` points.

With scaled coordinates v = w(x) / l and the radial slope g of the kernel,

    dC / d log l_k    =  g (v_k - v'_k)^2
    dC / d warp_k     = -g (v_k - v'_k) (h_k - h'_k),    h = dv / d warp,

so that sums over all pairs of points are products of one n x n matrix with a few columns.
"""

import math

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.kernels import correlation, scaled, square_distance, value_and_slope
from amortes.prior.warp import parameter_slopes

MANY = 16
# Numbers per temporary, 1 MB: more do not stay in the cache.
CHUNK = 1 << 17


class HyperPosterior:
    """Log posterior of z, `p` coordinates: those of the prior without the mean."""

    def __init__(self, prior: GPPrior, X: Tensor, y: Tensor) -> None:
        self.prior, self.X, self._y = prior, X, y  # b x n x d, b x n
        self.b, self.n, self.d = X.shape
        self.p = prior.latent_size(self.d) - 1
        self.residual = (y - prior.mean.loc)[..., None]  # b x n x 1
        self.constant = 0.5 * self.n * math.log(2.0 * math.pi)

    def rows(self, index: Tensor) -> "HyperPosterior":
        """That of some of the datasets."""
        return HyperPosterior(self.prior, self.X[index], self._y[index])

    def hyperparameters(self, z: Tensor) -> Hyperparameters:
        """Hyperparameters at z, `... x p`, with the mean at its prior location."""
        mean = torch.zeros_like(z[..., :1])
        whole = torch.cat([z[..., : self.d + 2], mean, z[..., self.d + 2 :]], -1)
        return self.prior.hyperparameters(whole, self.d)

    def root(self, z: Tensor) -> Tensor:
        """Cholesky factors of C at z, `b x k x p`: `b x k x n x n`."""
        size = max(1, CHUNK // (len(z) * self.n**2))
        hypers = [self.hyperparameters(part) for part in torch.split(z, size, dim=1)]
        K = [observed_covariance(self.prior, hyper, self.X[:, None]) for hyper in hypers]
        return linalg.cholesky(torch.cat(K, dim=1) if len(K) > 1 else K[0])

    def log_density(self, z: Tensor, root: Tensor | None = None, Y: Tensor | None = None) -> Tensor:
        """L(z) for z, `b x k x p`: `b x k`; `root` is that at z.

        Of other results Y, `b x m x n`, instead: `b x k x m`.
        """
        L = self.root(z) if root is None else root
        residual = self.residual if Y is None else (Y - self.prior.mean.loc).mT
        residual = residual[:, None].expand(*L.shape[:-1], -1)
        white: Tensor = torch.linalg.solve_triangular(L, residual, upper=False)
        square = white.square().sum(-2)  # b x k x m
        log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        rest = -0.5 * z.square().sum(-1) - log_det - self.constant
        return rest - 0.5 * square[..., 0] if Y is None else rest[..., None] - 0.5 * square

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """L and its gradient at z, `b x p`: `b` and `b x p`."""
        return self._derivatives(z, information=False)[:2]

    def derivatives(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, its gradient, and the Fisher matrix or average information at z, `b x p`."""
        return self._derivatives(z, information=True)

    def _derivatives(self, z: Tensor, *, information: bool) -> tuple[Tensor, Tensor, Tensor]:
        prior, hyper = self.prior, self.hyperparameters(z)
        V, *by_warp = self._scaled(hyper)  # b x n x d
        rough = None if hyper.roughness is None else hyper.roughness[:, None, None]
        output_variance = hyper.output_variance[:, None, None]
        r2 = square_distance(V, V)
        signal, slope = (output_variance * t for t in value_and_slope(prior.kernel, r2, rough))
        noise = hyper.noise_sd.square()[:, None]
        L = linalg.cholesky(add_mean_and_noise(prior, noise, signal.clone()))
        C_inv = torch.cholesky_inverse(L)
        a = C_inv @ self.residual  # b x n x 1
        value = (
            -0.5 * (self.residual * a).sum((-1, -2))
            - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - 0.5 * z.square().sum(-1)
            - self.constant
        )
        # dC as sums of products of columns with the slope; then the ones given as matrices.
        pairs, scale = [(V, V)], [prior.lengthscale.scale]
        if by_warp:
            pairs += [(V, -h) for h in by_warp]
            scale += [prior.warp_shape.scale, prior.warp_shift.scale]
        matrices = [prior.output_variance.scale * signal]
        if rough is not None:
            # Of the share rho by the log of its odds: rho (1 - rho).
            change = correlation("matern52", r2) - correlation("se", r2)
            factor = output_variance * rough * (1.0 - rough) * prior.rough_odds.scale
            matrices.append(factor * change)
        excess = a * a.mT - C_inv
        by_slope = slope * excess
        gradient = [s * _pair_sums(by_slope, A, B) for s, (A, B) in zip(scale, pairs, strict=True)]
        noise_scale = 2.0 * prior.noise_sd.scale * noise  # b x 1
        by_noise = noise_scale * excess.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        by_matrix = [(M * excess).sum((-1, -2))[:, None] for M in matrices]
        parts = [gradient[0], by_matrix[0], by_noise, *gradient[1:], *by_matrix[1:]]
        total = 0.5 * torch.cat(parts, dim=-1) - z
        if not information:
            return value, total, total
        if self.n > MANY:
            columns = [
                s * _products(slope, A, B, a) for s, (A, B) in zip(scale, pairs, strict=True)
            ]
            others = [M @ a for M in matrices]
            noisy = noise_scale[..., None] * a
            dCa = torch.cat([columns[0], others[0], noisy, *columns[1:], *others[1:]], dim=-1)
            white = torch.linalg.solve_triangular(L, dCa, upper=False)
            products = white.mT @ white
        else:
            dC = [s * _differences(slope, A, B) for s, (A, B) in zip(scale, pairs, strict=True)]
            eye = torch.eye(self.n, dtype=z.dtype) * noise_scale[..., None]
            one = [M[:, None] for M in matrices]
            all_dC = torch.cat([dC[0], one[0], eye[:, None], *dC[1:], *one[1:]], dim=1)
            # All are symmetric: this is C^-1 dC, transposed.
            A = (all_dC.flatten(1, 2) @ C_inv).reshape(all_dC.shape)  # b x p x n x n
            products = A.flatten(2) @ A.mT.flatten(2).mT
        fisher = 0.5 * products
        fisher.diagonal(dim1=-2, dim2=-1).add_(1.0)
        return value, total, _definite(fisher)

    def _scaled(self, hyper: Hyperparameters) -> tuple[Tensor, ...]:
        """Scaled points and, if they are warped, derivatives by the warp: `b x n x d` each."""
        if hyper.warp is None:
            return (scaled(hyper, self.X),)
        return tuple(t / hyper.lengthscale[:, None] for t in parameter_slopes(self.X, hyper.warp))


def _pair_sums(M: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """sum_ij M_ij (A_ik - A_jk) (B_ik - B_jk) for symmetric M: `b x d`."""
    row = M.sum(-1, keepdim=True)
    return 2.0 * ((row * A * B).sum(1) - (A * (M @ B)).sum(1))


def _products(M: Tensor, A: Tensor, B: Tensor, a: Tensor) -> Tensor:
    """sum_j M_ij (A_ik - A_jk) (B_ik - B_jk) a_j: `b x n x d`."""
    d = A.shape[-1]
    columns = M @ torch.cat([a, a * A, a * B, a * A * B], dim=-1)
    one, by_A, by_B, by_AB = torch.split_with_sizes(columns, [1, d, d, d], dim=-1)
    return A * B * one - A * by_B - B * by_A + by_AB


def _differences(M: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """M_ij (A_ik - A_jk) (B_ik - B_jk): `b x d x n x n`."""
    first = A.mT[..., :, None] - A.mT[..., None, :]
    second = first if B is A else B.mT[..., :, None] - B.mT[..., None, :]
    return M[:, None] * first * second


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
    V = scaled(hyper, X)
    rough = None if hyper.roughness is None else hyper.roughness[..., None, None]
    signal = correlation(prior.kernel, square_distance(V, V), rough)
    signal = hyper.output_variance[..., None, None] * signal
    return add_mean_and_noise(prior, hyper.noise_sd.square()[..., None], signal)
