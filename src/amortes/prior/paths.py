"""Sample paths of the prior that can be evaluated, with two derivatives, anywhere.

Random Fourier features (Rahimi & Recht, 2007): with m frequencies w_j from the kernel's spectral
density, uniform phases b_j and Rayleigh amplitudes a_j,

    f(x) = mean + sqrt(output_variance / m) * sum_j a_j cos(w_j . u + b_j),    u = warp(x).

A Rayleigh amplitude with a uniform phase is a Gaussian cosine plus a Gaussian sine, so a path is
exactly Gaussian given its frequencies, at the cost of one cosine per frequency.

Of a mixed kernel half of the frequencies are Matern's, and their amplitudes say how much of the
variance that is: were they as many as the roughness says, few rough paths would have any.

A path is a pure function of (seed, hyperparameters): corpora store those, not the features.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from amortes.prior.gp import Hyperparameters, Kernel
from amortes.prior.kernels import SPECTRAL_DEGREES_OF_FREEDOM
from amortes.prior.warp import mirrored, warp

NUM_FEATURES = 500  # as in the paper

# Cosines computed per chunk of a large evaluation: 2 MB of float32, which stays in the L2 cache.
CHUNK = 1 << 19


@dataclass(frozen=True)
class Paths:
    """A batch of b functions on the unit cube, each a sum of m cosines of warped coordinates."""

    frequencies: Tensor  # b x m x d
    phases: Tensor  # b x m
    amplitudes: Tensor  # b x m, including sqrt(output_variance / m)
    mean: Tensor  # b
    warp: Tensor | None = None  # b x 2 x d, of `prior.warp`

    @classmethod
    def sample(
        cls,
        kernel: Kernel,
        hyper: Hyperparameters,
        seeds: np.ndarray,
        *,
        num_features: int = NUM_FEATURES,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """One path per seed under `hyper` (batch shape b); the same function in either dtype.

        Use other seeds than those that `hyper` was drawn with: both start the same generator.
        """
        b, d = len(seeds), hyper.d
        normals = np.empty((b, num_features, d), np.float32)
        phases = np.empty((b, num_features), np.float32)
        amplitudes = np.empty((b, num_features), np.float32)
        stretch = np.ones((b, num_features), np.float32)
        dof = SPECTRAL_DEGREES_OF_FREEDOM["matern52" if kernel == "mixed" else kernel]
        for i, seed in enumerate(seeds):
            rng = np.random.Generator(np.random.Philox(key=int(seed)))
            rng.standard_normal(out=normals[i], dtype=np.float32)
            phases[i] = rng.random(num_features, dtype=np.float32)
            # Rayleigh by inversion; 1 - u is in (0, 1], so the logarithm is finite.
            amplitudes[i] = np.sqrt(-2.0 * np.log1p(-rng.random(num_features, dtype=np.float32)))
            if np.isfinite(dof):
                stretch[i] = np.sqrt(dof / rng.chisquare(dof, num_features))
            if hyper.roughness is not None:
                share, half = float(hyper.roughness[i]), num_features // 2
                stretch[i, :half] = 1.0
                amplitudes[i, :half] *= np.sqrt((1.0 - share) * num_features / half)
                amplitudes[i, half:] *= np.sqrt(share * num_features / (num_features - half))
        scale = (hyper.output_variance / num_features).sqrt().to(dtype)
        standard = torch.from_numpy(normals * stretch[..., None]).to(dtype)
        return cls(
            frequencies=standard / hyper.lengthscale.to(dtype)[:, None, :],
            phases=2 * torch.pi * torch.from_numpy(phases).to(dtype),
            amplitudes=scale[:, None] * torch.from_numpy(amplitudes).to(dtype),
            mean=hyper.mean.to(dtype),
            warp=None if hyper.warp is None else hyper.warp.to(dtype),
        )

    @property
    def b(self) -> int:
        """Number of paths."""
        return self.frequencies.shape[0]

    @property
    def d(self) -> int:
        """Number of input dimensions."""
        return self.frequencies.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of values and derivatives."""
        return self.frequencies.dtype

    def __getitem__(self, index: slice | Tensor) -> "Paths":
        return self._map(lambda t: t[index])

    def to(self, dtype: torch.dtype) -> "Paths":
        """The same functions in another floating-point type."""
        return self._map(lambda t: t.to(dtype))

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Paths":
        return Paths(**{name: function(t) for name, t in vars(self).items() if t is not None})

    @property
    def stationary(self) -> "Paths":
        """The same as functions of warped coordinates."""
        return self if self.warp is None else dataclasses.replace(self, warp=None)

    def __call__(self, X: Tensor) -> Tensor:
        """Values at X, `b x n x d`: `b x n`."""
        if self.warp is not None:
            return self.stationary(warp(X, self.warp))
        rows = max(1, CHUNK // self.phases.shape[1])
        if X.shape[1] >= rows:  # one path at a time, a block of points at a time
            blocks = [
                [self[i : i + 1]._values(x) for x in torch.split(X[i : i + 1], rows, 1)]
                for i in range(self.b)
            ]
            return torch.cat([torch.cat(row, dim=1) for row in blocks])
        step = max(1, rows // max(1, X.shape[1]))
        parts = [self[i : i + step]._values(X[i : i + step]) for i in range(0, self.b, step)]
        return torch.cat(parts) if parts else X.new_zeros(X.shape[:2])

    def waves(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The terms of f at warped coordinates X and their derivatives by the angle: `b x n x m`.

        All derivatives follow: f - mean is the sum of the first, the gradient is the second times
        the frequencies, the Hessian is minus the first times their `products`.
        """
        angles = self._angles(X)
        a = self.amplitudes[:, None]
        return a * angles.cos(), -a * angles.sin_()

    def products(self) -> Tensor:
        """w_j w_k for j <= k, row by row: `b x m x d(d+1)/2`."""
        row, column = torch.triu_indices(self.d, self.d)
        return self.frequencies[..., row] * self.frequencies[..., column]

    def symmetric(self, upper: Tensor) -> Tensor:
        """Symmetric matrices from their upper triangles: `... x d(d+1)/2` -> `... x d x d`."""
        row, column = torch.triu_indices(self.d, self.d)
        full = upper.new_empty(*upper.shape[:-1], self.d, self.d)
        full[..., row, column] = upper
        full[..., column, row] = upper
        return full

    def reflected(self, mask: Tensor) -> "Paths":
        """The functions x -> f(x') with x'_k = 1 - x_k where `mask` (`b x d`, bool) is set."""
        w = self.frequencies
        shift = (w * mask[:, None]).sum(-1)
        return dataclasses.replace(
            self,
            frequencies=torch.where(mask[:, None], -w, w),
            phases=self.phases + shift,
            warp=None if self.warp is None else mirrored(self.warp, mask),
        )

    def permuted(self, order: Tensor) -> "Paths":
        """The functions of inputs reordered by `order` (`b x d`): new x_k is old x_{order_k}."""
        index = order[:, None].expand_as(self.frequencies)
        return dataclasses.replace(
            self,
            frequencies=self.frequencies.gather(-1, index),
            warp=None
            if self.warp is None
            else self.warp.gather(-1, order[:, None].expand(-1, 2, -1)),
        )

    def _angles(self, X: Tensor) -> Tensor:
        return torch.baddbmm(self.phases[:, None], X, self.frequencies.mT)

    def _values(self, X: Tensor) -> Tensor:
        return self.mean[:, None] + (self._angles(X).cos_() @ self.amplitudes[..., None]).squeeze(
            -1
        )
