"""The Gaussian process of the prior with its constant mean integrated out.

A constant mean mu ~ N(m0, t^2) adds t^2 to the kernel, so given the remaining hyperparameters

    y ~ N(m0, K + t^2 11^T + s^2 I),

and mu itself, given y, is normal too. Everything is dense float64 linear algebra without
shortcuts: the oracles check faster code, so they share none with it.

Shapes: b datasets, p hyperparameter settings per dataset, n observations, q queries, d dimensions;
z are the latent coordinates of `GPPrior.hyperparameters`, `b x p x size`.
"""

import math

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.kernels import correlation
from amortes.prior.warp import warp

# Numbers in one batch of covariance matrices: 4 MB of float64.
CHUNK = 1 << 19

VARIANCE_FLOOR = 1e-12


class MarginalGP:
    """Exact likelihood and posterior of b datasets under given hyperparameters."""

    def __init__(self, prior: GPPrior, X: Tensor, y: Tensor) -> None:
        """Take X, `b x n x d`, and y, `b x n`."""
        self.prior, self.X = prior, X.double()
        self.b, self.n, self.d = X.shape
        self.residual = y.double() - prior.mean.loc
        self.mean_variance = prior.mean.scale**2

    def __getitem__(self, index: Tensor) -> "MarginalGP":
        """Some of the datasets."""
        return MarginalGP(self.prior, self.X[index], self.residual[index] + self.prior.mean.loc)

    def log_likelihood(self, z: Tensor) -> Tensor:
        """log p(y | X, hyperparameters): `b x p`."""
        p, size = z.shape[1], self.n * self.n
        rows, columns = max(1, CHUNK // (p * size)), max(1, CHUNK // size)
        blocks = [
            torch.cat(
                [
                    self._log_likelihood(slice(i, i + rows), part)
                    for part in torch.split(some, columns, dim=1)
                ],
                dim=1,
            )
            for i, some in zip(range(0, self.b, rows), torch.split(z, rows), strict=True)
        ]
        return torch.cat(blocks)

    def moments(self, z: Tensor, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance of f at Xq, `b x q x d`: two `b x p x q`."""
        columns = max(1, CHUNK // (self.n * max(self.n, Xq.shape[1])))
        means, variances = [], []
        for i in range(self.b):
            parts = [self._moments(i, part, Xq[i]) for part in torch.split(z[i], columns)]
            means.append(torch.cat([mean for mean, _ in parts]))
            variances.append(torch.cat([variance for _, variance in parts]))
        return torch.stack(means), torch.stack(variances)

    def joint(self, i: int, z: Tensor, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean `p x q` and covariance `p x q x q` of f at Xq, `q x d`, in dataset i.

        Here z is `p x size`.
        """
        hyper, L = self._factor(slice(i, i + 1), z[None])
        mean, A = self._project(i, hyper[0], L[0], Xq)
        return mean, self._kernel(hyper[0], Xq, Xq) - A.mT @ A

    def with_mean(self, z: Tensor, rng: torch.Generator) -> Tensor:
        """z with the coordinate of the mean drawn from its exact conditional distribution."""
        if self.mean_variance == 0.0:
            return z
        drawn = z.clone()
        columns = max(1, CHUNK // self.n**2)
        for i in range(self.b):
            noise = torch.randn(z.shape[1], generator=rng, dtype=torch.float64)
            parts = [self._mean_moments(i, part) for part in torch.split(z[i], columns)]
            centre, spread = (torch.cat(column) for column in zip(*parts, strict=True))
            drawn[i, :, self.d + 2] = centre + spread * noise
        return drawn

    def _mean_moments(self, i: int, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd, `p` each, of the latent coordinate of the mean given y."""
        _, L = self._factor(slice(i, i + 1), z[None])
        ones = torch.ones(*L.shape[1:3], 1, dtype=torch.float64)
        one = torch.linalg.solve_triangular(L[0], ones, upper=False)
        r = torch.linalg.solve_triangular(L[0], self.residual[i, :, None] * ones, upper=False)
        left = 1.0 - self.mean_variance * one.square().sum((-2, -1))
        return self.prior.mean.scale * (one * r).sum((-2, -1)), left.clamp_min(0.0).sqrt()

    def _log_likelihood(self, some: slice, z: Tensor) -> Tensor:
        _, L = self._factor(some, z)
        residual = self.residual[some, None, :, None].expand(*L.shape[:-1], 1)
        r: Tensor = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
        log_root: Tensor = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -log_root - 0.5 * r.square().sum(-1) - 0.5 * self.n * math.log(2 * math.pi)

    def _moments(self, i: int, z: Tensor, Xq: Tensor) -> tuple[Tensor, Tensor]:
        hyper, L = self._factor(slice(i, i + 1), z[None])
        mean, A = self._project(i, hyper[0], L[0], Xq)
        total = hyper.output_variance[0] + self.mean_variance
        return mean, (total[:, None] - A.square().sum(-2)).clamp_min(VARIANCE_FLOOR)

    def _project(
        self, i: int, hyper: Hyperparameters, L: Tensor, Xq: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Posterior mean `p x q`, and L^-1 k(X, Xq), `p x n x q`."""
        cross = self._kernel(hyper, self.X[i], Xq)
        A = torch.linalg.solve_triangular(L, cross, upper=False)
        residual = self.residual[i, :, None].expand(len(L), -1, -1)
        r = torch.linalg.solve_triangular(L, residual, upper=False)
        return self.prior.mean.loc + (A * r).sum(-2), A

    def _factor(self, some: slice, z: Tensor) -> tuple[Hyperparameters, Tensor]:
        """Hyperparameters and the Cholesky factor of the covariance of y: `b x p x n x n`."""
        hyper = self.prior.hyperparameters(z, self.d)
        X = self.X[some][:, None]
        K = self._kernel(hyper, X, X)
        K.diagonal(dim1=-2, dim2=-1).add_(hyper.noise_sd.square()[..., None])
        return hyper, linalg.cholesky(K)

    def _kernel(self, hyper: Hyperparameters, X1: Tensor, X2: Tensor) -> Tensor:
        """Covariances `... x n1 x n2` under hyperparameters `...`, to which points broadcast."""
        points = []
        for X in (X1, X2):
            U = X.expand(*hyper.output_variance.shape, *X.shape[-2:])
            U = U if hyper.warp is None else warp(U, hyper.warp)
            points.append(U / hyper.lengthscale.unsqueeze(-2))
        exact = "donot_use_mm_for_euclid_dist"
        r2 = torch.cdist(points[0], points[1], compute_mode=exact).square()
        rough = None if hyper.roughness is None else hyper.roughness[..., None, None]
        signal = correlation(self.prior.kernel, r2, rough)
        return (hyper.output_variance[..., None, None] * signal).add_(self.mean_variance)
