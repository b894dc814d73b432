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

In NumPy (`numpy_kernels` says why); factorisations, which are as fast there, are PyTorch's.

Shapes: b datasets, n observations, d dimensions, p coordinates of z.
"""

import copy
import dataclasses
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel import numpy_kernels
from amortes.nets.kernel.numpy_kernels import Array
from amortes.prior.gp import GPPrior, Hyperparameters, Marginal
from amortes.prior.kernels import correlation, scaled, square_distance

MANY = 16
# Of the noise, with results of variance 1: with less, covariances of smooth functions cannot be
# factorised in double precision, nor points be appended to them.
LEAST_NOISE_SD = 1e-6
# Numbers per temporary, 1 MB: more do not stay in the cache.
CHUNK = 1 << 17


class HyperPosterior:
    """Log posterior of z, `p` coordinates: those of the prior without the mean.

    In the order of `Hyperparameters`: lengthscales, output variance, noise, shapes and shifts of
    warps if the prior has any, roughness if the kernel is mixed. Datasets that are not `warped`,
    `b`, have no warps; those coordinates of z are zero and not `active`, `b x p`.
    """

    def __init__(
        self, prior: GPPrior, X: Array, y: Array, warped: NDArray[np.bool_] | None = None
    ) -> None:
        self.prior, self.X = prior, X  # b x n x d
        self.b, self.n, self.d = X.shape
        self.p = prior.latent_size(self.d) - 1
        self.warped = np.ones(self.b, dtype=bool) if warped is None else warped
        self.residual = y - prior.mean.loc  # b x n
        self._constant = 0.5 * self.n * math.log(2.0 * math.pi)
        self.active = np.ones((self.b, self.p))
        if prior.warped:
            self.active[~self.warped, self.d + 2 : 3 * self.d + 2] = 0.0
            self._log_odds = numpy_kernels.log_odds(X)

    def rows(self, index: NDArray[np.intp]) -> "HyperPosterior":
        """That of some of the datasets."""
        part = copy.copy(self)
        part.b = len(index)
        for name in ("X", "warped", "residual", "active", "_log_odds"):
            if name in self.__dict__:
                setattr(part, name, getattr(self, name)[index])
        return part

    def with_results(self, y: Array) -> "HyperPosterior":
        """That of other results at the same points."""
        other = copy.copy(self)
        other.residual = y - self.prior.mean.loc
        return other

    def root(self, z: Array) -> Array:
        """Cholesky factors of C at z, `b x k x p`: `b x k x n x n`."""
        size = max(1, CHUNK // (self.b * self.n**2))
        parts = [
            _observed(self.prior, self._noise(part), self._signal(part))
            for part in np.split(z, range(size, z.shape[1], size), axis=1)
        ]
        return _cholesky(np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0])

    def log_density(self, z: Array, root: Array | None = None, Y: Array | None = None) -> Array:
        """L(z) for z, `b x k x p`: `b x k`; `root` is that at z.

        Of other results Y, `b x m x n`, instead: `b x k x m`.
        """
        L = self.root(z) if root is None else root
        residual = self.residual[:, None] if Y is None else Y - self.prior.mean.loc
        columns = torch.from_numpy(residual.swapaxes(-1, -2)[:, None])
        factors = torch.from_numpy(L)
        white = torch.linalg.solve_triangular(
            factors, columns.expand(*L.shape[:-1], -1), upper=False
        ).numpy()
        square: Array = np.square(white).sum(-2)  # b x k x m
        rest: Array = -0.5 * np.square(z).sum(-1) - _log_diagonal(L) - self._constant
        return rest - 0.5 * square[..., 0] if Y is None else rest[..., None] - 0.5 * square

    def derivatives(self, z: Array) -> tuple[Array, Array, Array]:
        """L, its gradient, and the Fisher matrix or average information at z, `b x p`."""
        prior, d = self.prior, self.d
        V, B = self._scaled_with_slopes(z)  # b x n x d, b x n x (d or 3 d)
        r2 = numpy_kernels.square_distance(V, V)
        output_variance = self._value(prior.output_variance, z[:, d])[:, None, None]
        rough = self._roughness(z)
        value, slope, change = numpy_kernels.value_and_slopes(prior.kernel, r2, rough)
        signal, slope = output_variance * value, output_variance * slope
        noise = self._noise(z)
        L = _cholesky(_observed(prior, noise, signal.copy()))
        C_inv = torch.cholesky_inverse(torch.from_numpy(L)).numpy()
        a = (C_inv @ self.residual[..., None])[..., 0]  # b x n
        density = (
            -0.5 * (self.residual * a).sum(-1)
            - _log_diagonal(L)
            - 0.5 * np.square(z).sum(-1)
            - self._constant
        )
        # dC of lengthscales and warps are pairs of columns V, B with the slope; the rest matrices.
        matrices, factors = [signal], [np.array(prior.output_variance.scale)]
        if change is not None:
            matrices.append(change)
            by_odds = output_variance * rough * (1.0 - rough) * prior.rough_odds.scale
            factors.append(by_odds[:, 0, 0])
        excess = a[:, :, None] * a[:, None] - C_inv
        noise_factor = 2.0 * prior.noise_sd.scale * noise  # b
        by_noise = noise_factor * np.trace(excess, axis1=1, axis2=2)
        by_matrix = [f * (M * excess).sum((1, 2)) for f, M in zip(factors, matrices, strict=True)]
        by_pairs = _pair_sums(slope * excess, V, B)[:, None]
        gradient = 0.5 * self._ordered(by_pairs, by_matrix, by_noise)[:, 0] - z
        if self.n > MANY:
            dCa = self._ordered(
                _pair_products(slope, V, B, a),
                [
                    np.reshape(f, (-1, 1)) * (M @ a[..., None])[..., 0]
                    for f, M in zip(factors, matrices, strict=True)
                ],
                noise_factor[:, None] * a,
            )  # b x n x p
            information = dCa.swapaxes(1, 2) @ (C_inv @ dCa)
        else:
            information = self._fisher(C_inv, slope, V, B, matrices, factors, noise_factor)
        information *= 0.5
        information += np.eye(self.p)
        return density, gradient, _definite(information)

    def _fisher(
        self,
        C_inv: Array,
        slope: Array,
        V: Array,
        B: Array,
        matrices: list[Array],
        factors: list[Array],
        noise_factor: Array,
    ) -> Array:
        """tr(C^-1 dC_i C^-1 dC_j): `b x p x p`."""
        b, n, _ = V.shape
        away = V[:, :, None] - V[:, None]
        if B.shape[-1] > self.d:
            away = np.concatenate([away, away, away], axis=-1)
        pairs = slope[..., None] * away * (B[:, :, None] - B[:, None])  # b x n x n x (d or 3 d)
        dC = self._ordered(
            pairs.reshape(b, n * n, -1),
            [
                np.reshape(f, (-1, 1)) * M.reshape(b, n * n)
                for f, M in zip(factors, matrices, strict=True)
            ],
            noise_factor[:, None] * np.eye(n).reshape(1, n * n),
        )  # b x n^2 x p
        dC = dC.swapaxes(1, 2).reshape(b, self.p * n, n)
        # All are symmetric: this is C^-1 dC, transposed.
        A = (dC @ C_inv).reshape(b, self.p, n, n)
        transposed = A.swapaxes(2, 3).reshape(b, self.p, n * n)
        return A.reshape(b, self.p, n * n) @ transposed.swapaxes(1, 2)

    def _ordered(self, pairs: Array, matrices: list[Array], noise: Array) -> Array:
        """What belongs to lengthscales and warps, `b x r x (d or 3 d)`, with the rest: `b x r x p`.

        In the order of z; those of matrices and noise are `b x r`, or `b` with r = 1.
        """
        d, out = self.d, np.empty((self.b, pairs.shape[1], self.p))
        out[..., :d] = self.prior.lengthscale.scale * pairs[..., :d]
        out[..., d] = matrices[0].reshape(self.b, -1)
        out[..., d + 1] = noise.reshape(self.b, -1)
        if self.prior.warped:
            out[..., d + 2 : 2 * d + 2] = self.prior.warp_shape.scale * pairs[..., d : 2 * d]
            out[..., 2 * d + 2 : 3 * d + 2] = self.prior.warp_shift.scale * pairs[..., 2 * d :]
        if len(matrices) > 1:
            out[..., -1] = matrices[1].reshape(self.b, -1)
        out *= self.active[:, None]
        return out

    def _value(self, marginal: Marginal, z: Array) -> Array:
        real = marginal.loc + marginal.dim_power * math.log(self.d) + marginal.scale * z
        return np.exp(real) if marginal.log else real

    def _noise(self, z: Array) -> Array:
        """Variances of the noise at z, `... x p`: `...`."""
        sd = self._value(self.prior.noise_sd, z[..., self.d + 1])
        return np.square(np.maximum(sd, LEAST_NOISE_SD))

    def _roughness(self, z: Array) -> Array:
        """Share of Matern-5/2 in a mixed kernel at z, `... x p`: `... x 1 x 1`."""
        odds = self._value(self.prior.rough_odds, z[..., -1])
        return (odds / (1.0 + odds))[..., None, None]

    def _signal(self, z: Array) -> Array:
        """Covariance of f at z, `b x k x p`: `b x k x n x n`."""
        d, lengths = self.d, self._value(self.prior.lengthscale, z[..., : self.d])
        U = self.X[:, None]
        if self.prior.warped:
            U = self._warp(z).values(self._log_odds[:, None])
        V = U / lengths[..., None, :]
        r2 = numpy_kernels.square_distance(V, V)
        K = numpy_kernels.correlation(self.prior.kernel, r2, self._roughness(z))
        K *= self._value(self.prior.output_variance, z[..., d])[..., None, None]
        return K

    def _warp(self, z: Array) -> numpy_kernels.Warp:
        """The warps at z, `b x ... x p`; the identity where there is none."""
        d, prior = self.d, self.prior
        shape = self._value(prior.warp_shape, z[..., d + 2 : 2 * d + 2])
        shift = self._value(prior.warp_shift, z[..., 2 * d + 2 : 3 * d + 2])
        used = self.warped.astype(np.float64).reshape(self.b, *[1] * z.ndim)
        return numpy_kernels.Warp(used * np.stack([shape, shift], axis=-2))

    def _scaled_with_slopes(self, z: Array) -> tuple[Array, Array]:
        """Scaled points V at z, `b x p`: `b x n x d`; with minus their slopes by warps behind, too.

        That is `b x n x 3 d`, or V again without warps.
        """
        lengths = self._value(self.prior.lengthscale, z[:, None, : self.d])
        if not self.prior.warped:
            V = self.X / lengths
            return V, V
        U, by_shape, by_shift = self._warp(z).parameter_slopes(self._log_odds)
        B = np.concatenate([U, -by_shape, -by_shift], axis=-1)
        B /= np.tile(lengths, 3)
        return B[..., : self.d], B


def hyperparameters(
    prior: GPPrior, z: Array, d: int, warped: NDArray[np.bool_] | None = None
) -> Hyperparameters:
    """Those at z, `... x p`, with the mean at its prior location; warps where `warped`, `...`."""
    mean = np.zeros((*z.shape[:-1], 1))
    whole = np.concatenate([z[..., : d + 2], mean, z[..., d + 2 :]], axis=-1)
    hyper = prior.hyperparameters(torch.from_numpy(whole), d)
    hyper.noise_sd.clamp_(min=LEAST_NOISE_SD)
    if warped is None or hyper.warp is None:
        return hyper
    if not warped.any():
        return dataclasses.replace(hyper, warp=None)
    hyper.warp[torch.from_numpy(~warped)] = 0.0
    return hyper


def _pair_sums(M: Array, A: Array, B: Array) -> Array:
    """sum_ij M_ij (A_ik - A_jk) (B_ik - B_jk), symmetric M, for each d columns of B: `b x m d`."""
    b, n, d = A.shape
    each = M.sum(-1)[..., None] * B - M @ B
    sums: Array = 2.0 * (A[:, :, None] * each.reshape(b, n, -1, d)).sum(1)
    return sums.reshape(b, -1)


def _pair_products(M: Array, A: Array, B: Array, a: Array) -> Array:
    """sum_j M_ij (A_ik - A_jk) (B_ik - B_jk) a_j for each d columns of B: `b x n x m d`.

    The first d of them are A.
    """
    d, size = A.shape[-1], B.shape[-1]
    A = np.tile(A, size // d)
    aB = a[..., None] * B
    sums = M @ np.concatenate([a[..., None], aB, A * aB], axis=-1)
    one, by_B, by_AB = sums[..., :1], sums[..., 1 : size + 1], sums[..., size + 1 :]
    by_A = np.tile(by_B[..., :d], size // d)
    products: Array = A * B * one - A * by_B - B * by_A + by_AB
    return products


def _cholesky(A: Array) -> Array:
    L: Array = linalg.cholesky(torch.from_numpy(A)).numpy()
    return L


def _log_diagonal(L: Array) -> Array:
    """Half of the log determinant of L L': `...` for `... x n x n`."""
    half: Array = np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(-1)
    return half


def _definite(information: Array) -> Array:
    """The matrices, with the eigenvalues of those that rounding made indefinite at least one."""
    try:
        np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(information)
        mended = vectors @ (np.maximum(values, 1.0)[..., None] * vectors.swapaxes(-1, -2))
        return np.where((values.min(-1) <= 0.0)[:, None, None], mended, information)
    return information


def _observed(prior: GPPrior, noise: Array, K: Array) -> Array:
    """Covariance of observations, from that of the signal in the same memory: K + t^2 11' + s^2 I.

    The mean is integrated out. The noise variances s^2 are `...`.
    """
    K += prior.mean.scale**2
    diagonal = np.einsum("...ii->...i", K)
    diagonal += noise[..., None]
    return K


def observed_covariance(prior: GPPrior, hyper: Hyperparameters, X: Tensor) -> Tensor:
    """Covariance of observations at X, `... x n x d`, under hyperparameters `...`."""
    V = scaled(hyper, X)
    rough = None if hyper.roughness is None else hyper.roughness[..., None, None]
    signal = correlation(prior.kernel, square_distance(V, V), rough)
    K = hyper.output_variance[..., None, None] * signal
    K.add_(prior.mean.scale**2).diagonal(dim1=-2, dim2=-1).add_(hyper.noise_sd.square()[..., None])
    return K
