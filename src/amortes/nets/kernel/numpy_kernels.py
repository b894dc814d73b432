"""Kernels and warps of `amortes.prior` in NumPy, for the loops in which time is lost.

Inference and search are thousands of small operations. They take a half to a third of the time they
take in PyTorch (docs/log.md, 2026-11-18); tests compare the two. `differentiable` makes functions
in NumPy that know their gradients part of a graph of PyTorch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.prior.gp import GPPrior, Hyperparameters, Kernel
from amortes.prior.warp import LAST, SOFTNESS

# Exponentials may underflow, whatever a program has made of that by `np.seterr`.
QUIET = np.errstate(all="ignore")

Array = NDArray[np.float64]
PullBack = Callable[..., Array]
"""Derivatives by each result of a function -> those by its argument."""
Function = Callable[[Array], tuple[tuple[Array, ...], PullBack]]
"""Results, and how their derivatives become those by the argument."""


def square_distance(V1: Array, V2: Array) -> Array:
    """r^2 between scaled points, `... x n1 x d` and `... x n2 x d`: `... x n1 x n2`."""
    r2: Array = V1 @ V2.swapaxes(-1, -2)
    r2 *= -2.0
    r2 += np.square(V1).sum(-1)[..., :, None]
    r2 += np.square(V2).sum(-1)[..., None, :]
    return np.maximum(r2, 0.0, out=r2)


def correlation(kernel: Kernel, r2: Array, roughness: Array | float) -> Array:
    """The kernel at unit output variance as a function of r^2, which it may overwrite.

    The roughness is only looked at in a mixed one.
    """
    if kernel == "se":
        r2 *= -0.5
        return np.exp(r2, out=r2)
    smooth = np.exp(-0.5 * r2) if kernel == "mixed" else None
    r = np.sqrt(5.0 * r2)
    r2 *= 5.0 / 3.0
    r2 += r
    r2 += 1.0
    r2 *= np.exp(np.negative(r, out=r), out=r)
    if smooth is None:
        return r2
    r2 -= smooth
    r2 *= roughness
    r2 += smooth
    return r2


def value_and_slopes(
    kernel: Kernel, r2: Array, roughness: Array | float
) -> tuple[Array, Array, Array | None]:
    """The kernel, its radial slope -2 dk/d(r^2), and the slope by the roughness of a mixed one."""
    if kernel == "se":
        value = np.exp(-0.5 * r2)
        return value, value, None
    r = np.sqrt(5.0 * r2)
    decay = np.exp(-r)
    r += 1.0
    slope = r * (5.0 / 3.0)
    slope *= decay
    r += 5.0 / 3.0 * r2
    value = np.multiply(r, decay, out=r)
    if kernel == "matern52":
        return value, slope, None
    smooth = np.exp(-0.5 * r2)
    value -= smooth
    slope -= smooth
    slope *= roughness
    slope += smooth
    return smooth + roughness * value, slope, value


def radial_curvature(kernel: Kernel, r2: Array, roughness: Array | float) -> Array:
    """c(r^2) of `amortes.prior.kernels`."""
    if kernel == "se":
        return np.exp(-0.5 * r2)
    rough: Array = np.exp(-np.sqrt(5.0 * r2))
    rough *= 25.0 / 3.0
    if kernel == "matern52":
        return rough
    smooth = np.exp(-0.5 * r2)
    return smooth + roughness * (rough - smooth)


def expit(x: Array) -> Array:
    """1 / (1 + e^-x), which nowhere overflows; SciPy's takes a while to import."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def log_odds(X: Array) -> Array:
    """L(x) of `amortes.prior.warp`."""
    odds: Array = np.log((X + SOFTNESS) / (1.0 + SOFTNESS - X))
    return odds


class Warp:
    """The warp with parameters `... x 2 x d`: shapes, then shifts."""

    def __init__(self, parameters: Array) -> None:
        shape, self.shift = parameters[..., :1, :], parameters[..., 1:, :]  # ... x 1 x d
        self.stretch = np.exp(shape)
        self.edge = LAST * self.stretch
        self.low, self.high = expit(self.shift - self.edge), expit(self.shift + self.edge)
        self.per_width = 1.0 / (self.high - self.low)

    def values(self, L: Array) -> Array:
        """w(X) for the log-odds L of X, `... x n x d`."""
        return (expit(self.stretch * L + self.shift) - self.low) * self.per_width

    def values_and_slopes(self, X: Array) -> tuple[Array, Array]:
        """w(X) and dw/dx for X, `... x n x d`."""
        S = expit(self.stretch * log_odds(X) + self.shift)
        by_x = (1.0 + 2.0 * SOFTNESS) / ((X + SOFTNESS) * (1.0 + SOFTNESS - X))
        slopes = S * (1.0 - S) * (self.stretch * self.per_width) * by_x
        return (S - self.low) * self.per_width, slopes

    def parameter_slopes(self, L: Array) -> tuple[Array, Array, Array]:
        """w(X) for the log-odds L of X, and its derivatives by shape and shift."""
        S = expit(self.stretch * L + self.shift)
        U = (S - self.low) * self.per_width
        at_x, at_low, at_high = (s * (1.0 - s) for s in (S, self.low, self.high))
        by_shift = (at_x - at_low - U * (at_high - at_low)) * self.per_width
        by_edges = self.edge * at_low - U * (self.edge * (at_high + at_low))
        return U, (self.stretch * (L * at_x) + by_edges) * self.per_width, by_shift


class Scaling:
    """Scaled coordinates: warped, then divided by lengthscales, under each of k particles."""

    def __init__(self, hyper: Hyperparameters) -> None:
        self.per_length = 1.0 / hyper.lengthscale.numpy()[:, :, None]  # b x k x 1 x d
        self.warp = None if hyper.warp is None else Warp(hyper.warp.numpy())

    def values(self, X: Array) -> Array:
        """Those of points `b x q x d`: `b x k x q x d`."""
        U = X[:, None]
        return (U if self.warp is None else self.warp.values(log_odds(U))) * self.per_length

    def values_and_slopes(self, X: Array) -> tuple[Array, Array]:
        """The same and their derivatives by X, which broadcast."""
        if self.warp is None:
            return X[:, None] * self.per_length, self.per_length
        U, slopes = self.warp.values_and_slopes(X[:, None])
        return U * self.per_length, slopes * self.per_length


class KernelWith:
    """Prior covariances of f at queries with f at c known points, under each of k particles."""

    def __init__(self, prior: GPPrior, hyper: Hyperparameters, known: Array) -> None:
        """Known points `b x k x c x d`, scaled."""
        self.kernel, self.mean_variance, self.known = prior.kernel, prior.mean.scale**2, known
        self.scaling = Scaling(hyper)
        self.signal = hyper.output_variance.numpy()[..., None, None]  # b x k x 1 x 1
        rough = hyper.roughness
        self.roughness = (
            np.zeros_like(self.signal) if rough is None else rough.numpy()[..., None, None]
        )

    def forward(self, X: Array) -> tuple[tuple[Array, Array], PullBack]:
        """Covariances, with the mean's, and the kernel at unit variance, `b x k x c x q`.

        Of queries `b x q x d`; and how derivatives by the covariances become those by X.
        """
        V, stretch = self.scaling.values_and_slopes(X)
        r2 = square_distance(self.known, V)
        value, slope, _ = value_and_slopes(self.kernel, r2, self.roughness)
        K = self.signal * value  # not in place: the slope may be the same array
        K += self.mean_variance

        def pull_back(by_K: Array) -> Array:
            pull = by_K * slope
            pull *= self.signal
            by_V = pull.swapaxes(-1, -2) @ self.known - pull.sum(-2)[..., None] * V
            by_X: Array = (by_V * stretch).sum(1)
            return by_X

        return (K, value), pull_back


def differentiable(function: Function, X: Tensor) -> tuple[Tensor, ...]:
    """The results of the function at X, once differentiable by torch."""
    results: tuple[Tensor, ...] = _Differentiable.apply(X, function)  # type: ignore[no-untyped-call]
    return results


def in_parts(
    function: Function, X: Array, count: int, *, gradient: bool
) -> tuple[tuple[Array, ...], PullBack]:
    """The function at so many queries of X, `b x q x d`, at a time, so that temporaries stay small.

    Queries are the last dimension of the results. There are derivatives only with `gradient`.
    """
    ends = range(count, X.shape[1], count)
    results, pulls = [], []
    for part in np.split(X, ends, axis=1):
        result, pull = function(part)
        results.append(result)
        if gradient:
            pulls.append(pull)
        del pull  # it keeps all temporaries: memory that the next queries can use

    def pull_back(*by_results: Array) -> Array:
        by_parts = zip(*(np.split(by, ends, axis=-1) for by in by_results), strict=True)
        return np.concatenate([pull(*by) for pull, by in zip(pulls, by_parts, strict=True)], axis=1)

    return tuple(np.concatenate(each, axis=-1) for each in zip(*results, strict=True)), pull_back


class _Differentiable(torch.autograd.Function):
    @staticmethod
    @QUIET
    def forward(ctx: Any, X: Tensor, function: Function) -> tuple[Tensor, ...]:
        results, ctx.pull_back = function(X.detach().numpy())
        return tuple(torch.from_numpy(result) for result in results)

    @staticmethod
    @once_differentiable
    @QUIET
    def backward(ctx: Any, *by_results: Tensor) -> tuple[Tensor, None]:
        return torch.from_numpy(ctx.pull_back(*(by.numpy() for by in by_results))), None
