"""How much better a query may be than a point x: moments of f(q) - f(x), log EI, their gradients.

With k the prior covariances of a query with the n observations, w = W k (see `conditioning`), and
those of x,

    mean      a' k - m(x)
    variance  v - w'w + v(x) - 2 (k(q, x) - w_x' w)

whose derivatives by k are a and 2 (W' w_x - W' w), and by k(q, x) 0 and -2. In scaled coordinates
dk_i / dq = -s_i (q - v_i) with the radial slope s, so a gradient takes two products of matrices.

The expected improvement under a mixture of particles is sum_j w_j s_j h(m_j / s_j) with h(u) =
φ(u) + u Φ(u); its logarithm does not underflow (Ament et al., Unexpected Improvements to Expected
Improvement for Bayesian Optimization, NeurIPS 2023). A search asks for some ten gradients, so that
this is in NumPy (`numpy_kernels` says why).

Shapes: b datasets, k particles, n observations, q queries, d dimensions.
"""

import math

import numpy as np
import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.numpy_kernels import QUIET, Array, KernelWith, PullBack, differentiable

# Where formulas of log h change: the first loses digits below, the second a third of them at -1e5.
TAIL, FAR_TAIL = -1.0, -1e3


class Improvement:
    """Upon x, `b x d`, for one conditioned dataset; everything that all queries share."""

    def __init__(self, conditioned: Conditioned, x: Tensor) -> None:
        at_x, hyper = conditioned.moments(x[:, None]), conditioned.particles.hyper
        self.log_weights = conditioned.particles.log_weights.numpy()[..., None]  # b x k x 1
        known = torch.cat([conditioned.V, at_x.V], dim=-2).numpy()  # b x k x (n + 1) x d
        self.kernel = KernelWith(conditioned.prior, hyper, known)
        self.whitener = conditioned.whitener.numpy()  # b x k x n x n
        self.coefficients = conditioned.coefficients.numpy()[..., None]  # b x k x n x 1
        self.prior_variance = conditioned.prior_variance.numpy()[..., None]  # b x k x 1
        self.floor = VARIANCE_FLOOR * self.prior_variance
        self.offset = conditioned.prior.mean.loc - at_x.mean.numpy()  # b x k x 1
        self.variance = at_x.variance.numpy()  # b x k x 1
        self.whitened = at_x.whitened.numpy()  # b x k x n x 1

    def moments(self, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f(Xq) - f(x), Xq `b x q x d`: `b x k x q` each."""
        mean, variance = differentiable(self.forward, Xq)
        return mean, variance

    def log_expected(self, Xq: Tensor) -> Tensor:
        """log E max(f(Xq) - f(x), 0), Xq `b x q x d`: `b x q`."""
        (value,) = differentiable(self.log_expectation, Xq)
        return value

    @QUIET
    def log_expected_with_gradient(self, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """The same and its gradient by Xq, `b x q x d`, without a graph."""
        (value,), pull_back = self.log_expectation(Xq.numpy())
        return torch.from_numpy(value), torch.from_numpy(pull_back(np.ones_like(value)))

    def log_expectation(self, X: Array) -> tuple[tuple[Array], PullBack]:
        """`log_expected`, and how derivatives by it become those by X."""
        (mean, variance), pull_back = self.forward(X)
        sd = np.sqrt(variance)
        log_h, by_density, by_chance = _log_h(mean / sd)
        terms = self.log_weights + np.log(sd) + log_h  # b x k x q
        top = terms.max(1, keepdims=True)
        shares = np.exp(np.maximum(terms - top, -80.0))  # smaller ones do not matter, but take time
        total = shares.sum(1, keepdims=True)
        shares /= total

        def pull_back_value(by_value: Array) -> Array:
            by_each = shares * by_value[:, None]
            by_mean, by_variance = by_each * by_chance / sd, by_each * by_density / (2.0 * variance)
            return pull_back(by_mean, by_variance)

        return ((top + np.log(total))[:, 0],), pull_back_value

    def forward(self, X: Array) -> tuple[tuple[Array, Array], PullBack]:
        """Mean and variance, `b x k x q`, and how their derivatives become those by X."""
        (K, _), pull_back_kernel = self.kernel.forward(X)  # b x k x (n + 1) x q
        k, k_x = K[..., :-1, :], K[..., -1, :]
        whitened = linalg.lower_times(self.whitener, k)
        mean = (self.coefficients.swapaxes(-1, -2) @ k)[..., 0, :] + self.offset
        own = np.maximum(self.prior_variance - np.square(whitened).sum(-2), self.floor)
        shared = k_x - (self.whitened.swapaxes(-1, -2) @ whitened)[..., 0, :]
        variance = own + self.variance - 2.0 * shared
        free = variance > self.floor

        def pull_back(by_mean: Array, by_variance: Array) -> Array:
            by_variance = (2.0 * by_variance * free)[..., None, :]
            by_k = self.whitener.swapaxes(-1, -2) @ (self.whitened - whitened)
            by_k *= by_variance
            by_k += self.coefficients * by_mean[..., None, :]
            return pull_back_kernel(np.concatenate([by_k, -by_variance], axis=-2))

        return (mean, np.maximum(variance, self.floor)), pull_back


def _log_h(u: Array) -> tuple[Array, Array, Array]:
    """log h(u), φ(u) / h(u) and Φ(u) / h(u).

    In the tail h = φ (1 + u M) with Mills' ratio M = Φ / φ; far in it 1 + u M = 1 / u^2 - 3 / u^4.
    """
    body = np.maximum(u, TAIL)
    density = np.exp(-0.5 * np.square(body)) / math.sqrt(2.0 * math.pi)
    chance = torch.special.ndtr(torch.from_numpy(body)).numpy()
    h = density + body * chance
    log_h, by_density, by_chance = np.log(h), density / h, chance / h
    tail = u < TAIL
    if tail.any():
        v = u[tail]
        erfcx = torch.special.erfcx(torch.from_numpy(-math.sqrt(0.5) * v)).numpy()
        mills = math.sqrt(0.5 * math.pi) * erfcx
        per_square = 1.0 / np.square(v)
        rest = np.where(v < FAR_TAIL, per_square * (1.0 - 3.0 * per_square), 1.0 + v * mills)
        log_h[tail] = -0.5 * np.square(v) - 0.5 * math.log(2.0 * math.pi) + np.log(rest)
        by_density[tail], by_chance[tail] = 1.0 / rest, mills / rest
    return log_h, by_density, by_chance
