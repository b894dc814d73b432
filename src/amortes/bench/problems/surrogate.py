"""The mean of a Gaussian process fitted to a table: a smooth, noise-free stand-in for it.

    m(x) = y_mean + y_sd (c + k(x, X) (K + s^2 I)^-1 ((y - y_mean) / y_sd - c))

with a Matern-5/2 kernel, a lengthscale for each column, and y_sd over n - 1.

`fit` finds lengthscales, output variance, s and c at the maximum of the marginal likelihood times
the priors that Ax's benchmark has: log output variance ~ N(-3, 0.0025^2), log noise variance ~
N(-4, 1), none on lengthscales and c.
"""

import hashlib
import math

import numpy as np
import torch
from torch import Tensor

from amortes.errors import FileError
from amortes.files import cache_folder, read_json, write_json
from amortes.prior.gp import Hyperparameters
from amortes.prior.kernels import covariance
from amortes.threads import single_thread

OUTPUT_VARIANCE_PRIOR = (-3.0, 0.0025)
NOISE_VARIANCE_PRIOR = (-4.0, 1.0)


class TableSurrogate:
    """The posterior mean given a table: X, `n x d`, and y, `n`."""

    def __init__(self, X: Tensor, y: Tensor, hyper: Hyperparameters) -> None:
        self.X, self.hyper = X, hyper
        self.y_mean, self.y_sd = y.mean(), y.std()
        K = covariance("matern52", hyper, X, X)
        L = torch.linalg.cholesky(K + hyper.noise_sd.square() * torch.eye(len(X), dtype=X.dtype))
        residual = (y - self.y_mean) / self.y_sd - hyper.mean
        self.weights = torch.cholesky_solve(residual[:, None], L).squeeze(-1)

    def __call__(self, X: Tensor) -> Tensor:
        """The mean at X, `m x d`: `m`."""
        standard = self.hyper.mean + covariance("matern52", self.hyper, X, self.X) @ self.weights
        return self.y_mean + self.y_sd * standard


def fit(X: Tensor, y: Tensor) -> Hyperparameters:
    """Hyperparameters of the standardised y, `n`, at X, `n x d`; n = 2000 takes a minute."""
    import scipy.optimize  # half a second, which no worker that just evaluates should wait for

    standard = (y - y.mean()) / y.std()
    d = X.shape[1]
    identity = torch.eye(len(X), dtype=X.dtype)

    def unpack(z: Tensor) -> Hyperparameters:
        return Hyperparameters(z[:d].exp(), z[d].exp(), (z[d + 1] / 2).exp(), z[d + 2])

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.tensor(values, dtype=X.dtype, requires_grad=True)
        hyper = unpack(z)
        K = covariance("matern52", hyper, X, X) + hyper.noise_sd.square() * identity
        L = torch.linalg.cholesky(K)
        white = torch.linalg.solve_triangular(L, (standard - hyper.mean)[:, None], upper=False)
        negative = white.square().sum() / 2 + L.diagonal().log().sum()
        for place, (loc, scale) in ((d, OUTPUT_VARIANCE_PRIOR), (d + 1, NOISE_VARIANCE_PRIOR)):
            # Of a log-normal density: it has a factor 1 / value.
            negative = negative + z[place] + ((z[place] - loc) / scale).square() / 2
        negative = negative / len(X)
        (gradient,) = torch.autograd.grad(negative, z)
        return negative.item(), gradient.numpy()

    spread = X.amax(0) - X.amin(0)
    start = torch.cat([(0.5 * spread).log(), torch.tensor([-3.0, -2.0, 0.0], dtype=X.dtype)])
    bounds = [(math.log(1e-3 * s), math.log(1e3 * s)) for s in spread.tolist()]
    bounds += [(-4.0, -2.0), (-10.0, 1.0), (-3.0, 3.0)]
    with single_thread():
        found = scipy.optimize.minimize(
            loss, start.numpy(), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 300, "ftol": 1e-10, "gtol": 1e-6},
        )  # fmt: skip
    return unpack(torch.tensor(found.x, dtype=X.dtype))


def cached_fit(X: Tensor, y: Tensor) -> Hyperparameters:
    """`fit`, remembered in the cache folder ($AMORTES_CACHE or ~/.cache/amortes)."""
    digest = hashlib.sha256(X.numpy().tobytes() + y.numpy().tobytes()).hexdigest()[:16]
    path = cache_folder() / f"surrogate-{digest}.json"
    try:
        values = read_json(path)
        return Hyperparameters(**{f: torch.tensor(v, dtype=X.dtype) for f, v in values.items()})
    except (FileError, AttributeError, KeyError, TypeError):
        hyper = fit(X, y)
        write_json(path, {name: tensor.tolist() for name, tensor in hyper.tensors().items()})
        return hyper
