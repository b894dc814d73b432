"""The posterior over Gaussian-process hyperparameters, as a few weighted particles.

In the prior's standard normal coordinates z (log lengthscales, log output variance, log noise; the
constant mean is integrated out exactly), the log posterior of one dataset is

    L(z) = log N(y; m0, K(z) + t^2 11' + s(z)^2 I) - |z|^2 / 2.

A few damped Fisher-scoring steps find its mode (Nocedal & Wright, 2006, chapter 4),

    gradient  g_i = (a' dK_i a - tr(K^-1 dK_i)) / 2 - z_i,   a = K^-1 (y - m0),
    Fisher    F_ij = tr(K^-1 dK_i K^-1 dK_j) / 2 + [i = j],

then fixed quasi-random normal points are sent through F^(-1/2), slightly inflated, joined by a few
from the prior (tiny datasets have heavier tails than a Laplace approximation), and weighted by
posterior over proposal density. No Markov chain, no random numbers: milliseconds.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes import linalg
from amortes.errors import ConfigError, require_least
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.kernels import correlation, scaled_square_distance, value_and_slope

# Norm of the gradient of the log posterior that is too much for a mode: docs/log.md, 2026-11-16.
STEEP = 1.0
# Shares of the predicted rise above which there is less damping, and below which there is more.
GOOD, POOR = 0.6, 0.2
# The mode is looked for within so many standard deviations of the prior.
FURTHEST = 5.0
# Datasets are worked on in groups whose derivative matrices stay in the cache.
CACHE_BYTES = 2 << 20


@dataclass(frozen=True)
class Particles:
    """k weighted hyperparameter settings for each of b datasets."""

    hyper: Hyperparameters  # batch shape b x k; `mean` is the prior location of the mean
    log_weights: Tensor  # b x k, normalised


@dataclass(frozen=True, kw_only=True)
class ParticleConfig:
    """Number of particles and effort; measured in docs/log.md, 2026-11-15."""

    count: int = 16
    prior_share: float = 0.125
    inflation: float = 1.25
    steps: int = 10

    def __post_init__(self) -> None:
        require_least(self, count=1, steps=0)
        if not (0.0 <= self.prior_share < 1.0 and self.from_prior < self.count):
            raise ConfigError(
                "prior_share: must be in [0, 1) and leave a particle that is not from the prior, "
                f"not {self.prior_share} of {self.count}."
            )
        if not (self.inflation > 0.0 and math.isfinite(self.inflation)):
            raise ConfigError(f"inflation: must be positive, not {self.inflation}.")

    @property
    def from_prior(self) -> int:
        """Number of particles that come from the prior."""
        return round(self.prior_share * self.count)


class HyperPosterior:
    """Log posterior of the latent z for a batch of datasets, with gradient and Fisher matrix."""

    def __init__(self, prior: GPPrior, X: Tensor, y: Tensor) -> None:
        self.prior, self.X = prior, X  # b x n x d
        self.b, self.n, self.d = X.shape
        self.residual = (y - prior.mean.loc)[..., None]  # b x n x 1
        coordinates = X.mT  # b x d x n
        difference = coordinates[..., :, None] - coordinates[..., None, :]
        self.square_differences = difference.square_()  # b x d x n x n
        self.scales = torch.tensor(
            [prior.lengthscale.scale] * self.d
            + [prior.output_variance.scale, prior.noise_sd.scale],
            dtype=X.dtype,
        )
        # The derivatives need these at every step: memory that is fresh each time is slow.
        # By an output variance that is known they are multiplied by zero, and can be anything.
        self._dK = X.new_zeros(self.b, self.d + 1, self.n, self.n)
        self._A, self._A_transposed = X.new_zeros(2, self.b, self.d + 2, self.n, self.n)
        self._varied = self.d + (prior.output_variance.scale > 0)

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
        dK, A, varied = self._dK, self._A, self._varied
        torch.mul(slope[:, None], self.square_differences, out=dK[:, :-1])
        dK[:, -1] = signal
        # All are symmetric: this is K^-1 dK, transposed.
        torch.bmm(dK[:, :varied].flatten(1, 2), K_inv, out=A[:, :varied].flatten(1, 2))
        A[:, -1] = K_inv
        factor = self.scales * torch.cat([precision, torch.ones_like(noise), 2 * noise], dim=1)
        quadratic = torch.cat(
            [(a.mT[:, None] @ dK @ a[:, None]).flatten(1), a.square().sum(1)], dim=1
        )
        transposed = self._A_transposed.copy_(A.mT).flatten(2)
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


def find_mode(posterior: HyperPosterior, steps: int) -> tuple[Tensor, Tensor]:
    """Mode `b x p` and Fisher matrix there `b x p x p`, by damped Fisher scoring from z = 0.

    Damping follows the rise of a step as a share of the rise that was predicted: else steps jump to
    and fro across flat valleys of short lengthscales. Without noise a step takes at most half a
    unit off its logarithm, and the mode may be far: datasets whose slope is `STEEP` after `steps`
    go on, twice as often at most.
    """
    z = posterior.X.new_zeros(posterior.b, posterior.d + 2)
    value, gradient, fisher = posterior.derivatives(z)
    damping = torch.full_like(value, 0.1)
    eye = torch.eye(z.shape[-1], dtype=z.dtype)
    for i in range(3 * steps):
        free = (z.abs() < FURTHEST) | (gradient * z < 0.0)
        gradient = torch.where(free, gradient, 0.0)
        moving = torch.ones_like(value, dtype=torch.bool)
        if i >= steps:
            moving = gradient.norm(dim=-1) > STEEP
            if not bool(moving.any()):
                break
        damped = fisher + damping[:, None, None] * eye
        step = torch.cholesky_solve(gradient[..., None], linalg.cholesky(damped)).squeeze(-1)
        step = step * (2.0 / step.norm(dim=-1, keepdim=True).clamp_min(2.0))
        z_new = (z + step).clamp(-FURTHEST, FURTHEST)
        value_new, gradient_new, fisher_new = posterior.derivatives(z_new)
        better = moving & (value_new >= value)
        step = z_new - z
        bend = (step[:, None] @ fisher @ step[..., None]).flatten()
        share = (value_new - value) / ((gradient * step).sum(-1) - 0.5 * bend).clamp_min(1e-12)
        more = torch.where(better, 4.0, 8.0) * damping.clamp_min(1.0)
        damping = torch.where(share > GOOD, 0.2 * damping, damping)
        damping = torch.where(share > POOR, damping, more).clamp(1e-4, 1e6)
        z, gradient = (
            torch.where(better[:, None], new, old)
            for new, old in ((z_new, z), (gradient_new, gradient))
        )
        value = torch.where(better, value_new, value)
        fisher = torch.where(better[:, None, None], fisher_new, fisher)
    return z, fisher


def infer_particles(prior: GPPrior, X: Tensor, y: Tensor, config: ParticleConfig) -> Particles:
    """Weighted hyperparameters for X, `b x n x d`, y, `b x n` (float64)."""
    return infer_with_roots(prior, X, y, config)[0]


def infer_with_roots(
    prior: GPPrior, X: Tensor, y: Tensor, config: ParticleConfig
) -> tuple[Particles, Tensor]:
    """The same, and the Cholesky factors of the observations' covariances, `b x k x n x n`."""
    _, n, d = X.shape
    group = max(1, CACHE_BYTES // (8 * (d + 2) * n * n))
    starts = range(0, len(X), group)
    parts = [_infer(prior, X[i : i + group], y[i : i + group], config) for i in starts]
    columns = zip(*(p.hyper.tensors() for p, _ in parts), strict=True)
    hyper = Hyperparameters(*(torch.cat(column) for column in columns))
    particles = Particles(hyper, torch.cat([p.log_weights for p, _ in parts]))
    return particles, torch.cat([root for _, root in parts]) if len(parts) > 1 else parts[0][1]


def _infer(
    prior: GPPrior, X: Tensor, y: Tensor, config: ParticleConfig
) -> tuple[Particles, Tensor]:
    posterior = HyperPosterior(prior, X, y)
    p = posterior.d + 2
    mode, fisher = find_mode(posterior, config.steps)
    from_prior = config.from_prior
    points = normal_points(p, config.count).to(X.dtype)
    factor = torch.linalg.cholesky(fisher)
    local = torch.linalg.solve_triangular(
        factor.mT, config.inflation * points[from_prior:].T.expand(posterior.b, -1, -1), upper=True
    ).mT
    z = torch.cat(
        [points[:from_prior].expand(posterior.b, -1, -1), mode[:, None] + local], dim=1
    )  # b x k x p
    whitened = (z - mode[:, None]) @ factor / config.inflation
    log_local = (
        factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None]
        - p * math.log(config.inflation)
        - 0.5 * whitened.square().sum(-1)
    )
    log_prior = -0.5 * z.square().sum(-1)
    share = from_prior / config.count
    log_proposal = torch.logaddexp(
        log_local + math.log1p(-share), log_prior + (math.log(share) if share else -math.inf)
    )
    root = posterior.root(z)
    log_weights = torch.log_softmax(posterior.log_density(z, root) - log_proposal, dim=-1)
    return Particles(posterior.hyperparameters(z), log_weights), root


def normal_points(dim: int, count: int) -> Tensor:
    """`count x dim` quasi-random standard normal points, float64; always the same.

    Fewer are the first of more, so that only powers of two are kept.
    """
    return _normal_points(dim, 1 << (count - 1).bit_length())[:count]


@lru_cache(maxsize=256)
def _normal_points(dim: int, count: int) -> Tensor:
    sobol: Any = SobolEngine  # untyped in torch
    U: Tensor = sobol(dim, scramble=True, seed=1).draw(count, dtype=torch.float64)
    points: Tensor = torch.special.ndtri(U.clamp(1e-6, 1 - 1e-6))
    return points
