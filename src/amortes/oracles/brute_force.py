"""Information gained about the optimum, by brute force, in one and two dimensions.

1. Hyperparameters from their exact posterior (`amortes.oracles.smc`).
2. Under each of them, functions from the exact joint posterior on a fine grid and at the queries.
3. The maximum of each function on the grid, refined by a parabola along each axis.
4. Mutual information between y(x) and the maximiser, the maximum, and both, by
   `amortes.oracles.information`.

All of it is repeated with independent random numbers. The result is the mean of the repeats, its
error their standard deviation / sqrt(repeats): Monte Carlo error of every step is in it. What is
not is the bias of the estimator; see there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import scipy.stats
import torch
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.oracles.information import SMALLEST_LEAF, Samples, information
from amortes.oracles.smc import PosteriorDraws, SMCConfig, hyper_posterior
from amortes.prior.gp import GPPrior
from amortes.random import generator

GRID = {1: 128, 2: 22}  # points per axis, by dimension
JITTER = 1e-10
CHUNK = 1 << 20  # numbers in one batch of covariance matrices


@dataclass(frozen=True, kw_only=True)
class BruteForceConfig:
    """Effort; the defaults take about 20 s per task in 1-D and 60 s in 2-D on one core."""

    functions: int = 1 << 15  # per repeat, a power of two
    # Per repeat, a power of two. Few would be worse than few functions: an optimum must not give
    # away which of the draws its function came from.
    hyperparameters: int = 1024
    leaf: int = 256  # a power of two
    repeats: int = 4
    smc: SMCConfig = SMCConfig()

    def __post_init__(self) -> None:
        for field in ("functions", "hyperparameters", "leaf"):
            value = getattr(self, field)
            if value < 1 or value.bit_count() != 1:
                raise ConfigError(f"{field}: must be a power of two, not {value}.")
        if not SMALLEST_LEAF <= self.leaf <= self.functions:
            raise ConfigError(
                f"leaf: must be between {SMALLEST_LEAF} and functions={self.functions}, "
                f"not {self.leaf}."
            )
        if self.hyperparameters > min(self.functions, self.smc.final_particles):
            raise ConfigError(
                "hyperparameters: must not exceed functions or smc.final_particles, "
                f"not {self.hyperparameters}."
            )
        if self.repeats < 2 or self.repeats % 2:
            raise ConfigError(f"repeats: must be even and at least 2, not {self.repeats}.")


@dataclass(frozen=True)
class BruteForce:
    """Brute-force gains at q queries, and draws of the optimum from the same posterior."""

    gain: Tensor  # q x 3, in the order of GAINS
    error: Tensor  # q x 3, one standard error
    reliability: Tensor  # 3, expected rank correlation over x with another such estimate
    x_star: Tensor  # N x d
    f_star: Tensor  # N


@torch.no_grad()
def brute_force(
    prior: GPPrior,
    X: Tensor,
    y: Tensor,
    Xq: Tensor,
    seed: int,
    config: BruteForceConfig | None = None,
    on_repeat: Callable[[], object] = lambda: None,
) -> BruteForce:
    """Gains at Xq, `q x d`, given X, `n x d`, and y, `n`, with d at most 2."""
    config = config or BruteForceConfig()
    d = X.shape[1]
    if d not in GRID:
        raise DataError(f"brute force works for d in {{1, 2}}, not d={d}.")
    gains, optima = [], []
    for repeat in range(config.repeats):
        rng = generator(seed, repeat)
        posterior = hyper_posterior(prior, X[None], y[None], rng, config.smc)
        samples = sample_functions(posterior, Xq, config, rng)
        gains.append(information(samples, config.leaf, rng))
        optima.append((samples.x_star, samples.f_star))
        on_repeat()
    stacked = torch.stack(gains)
    return BruteForce(
        gain=stacked.mean(0),
        error=stacked.std(0) / config.repeats**0.5,
        reliability=_reliability(stacked),
        x_star=torch.cat([x for x, _ in optima]),
        f_star=torch.cat([f for _, f in optima]),
    )


def _reliability(gains: Tensor) -> Tensor:
    """Rank correlation over the queries between the halves of `r x q x 3`, for their mean: `3`."""
    half = len(gains) // 2
    one, two = gains[:half].mean(0), gains[half:].mean(0)
    r = torch.tensor([rank_correlation(a, b) for a, b in zip(one.mT, two.mT, strict=True)])
    return 2 * r / (1 + r)  # Spearman-Brown: from half the length to the whole


def rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's correlation of two vectors; 0 if one is constant, for it orders nothing."""
    if a.amin() == a.amax() or b.amin() == b.amax():
        return 0.0
    return float(scipy.stats.spearmanr(a, b).statistic)


def sample_functions(
    posterior: PosteriorDraws, Xq: Tensor, config: BruteForceConfig, rng: torch.Generator
) -> Samples:
    """Functions of the one dataset behind `posterior`, at the queries and at their maximum."""
    d = Xq.shape[1]
    axis = torch.linspace(0.0, 1.0, GRID[d], dtype=torch.float64)
    grid = torch.cartesian_prod(*[axis] * d).view(-1, d)
    points = torch.cat([grid, Xq.double()])
    thin = posterior.thinned(config.hyperparameters)
    each = config.functions // config.hyperparameters
    some = max(1, CHUNK // len(points) ** 2)
    parts = []
    for z, noise_sd in zip(
        *(torch.split(t[0], some) for t in (thin.z, thin.hyper.noise_sd)), strict=True
    ):
        mean, covariance = posterior.gp.joint(0, z, points)
        noise = torch.randn(len(z), each, len(points), generator=rng, dtype=torch.float64)
        F = (mean[:, None] + noise @ _root(covariance).mT).flatten(0, 1)
        x_star, f_star = grid_maximum(F[:, : len(grid)].reshape(-1, *[GRID[d]] * d))
        parts.append((F[:, len(grid) :], noise_sd.repeat_interleave(each), x_star, f_star))
    return Samples(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _root(covariance: Tensor) -> Tensor:
    """R with R R^T the covariance, `p x q x q`, which may be singular or worse by rounding."""
    # Values on a fine grid are almost linearly dependent; an error of 1e-5 makes up for it.
    covariance.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    root: Tensor
    root, failed = torch.linalg.cholesky_ex(covariance)
    for i in failed.nonzero()[:, 0].tolist():
        # Little noise and much data: what is left of the variance is close to rounding errors.
        eigenvalues, V = torch.linalg.eigh(covariance[i])
        root[i] = V * eigenvalues.clamp_min(0.0).sqrt()
    return root


def grid_maximum(F: Tensor) -> tuple[Tensor, Tensor]:
    """Maximisers `N x d` and maxima `N` of functions on an evenly spaced grid, `N x g x ... x g`.

    Off the grid by a parabola through three neighbours along each axis; the cross terms that this
    leaves out move x* by a fraction of the spacing and hardly change the maximum.
    """
    N, g, d = len(F), F.shape[1], F.ndim - 1
    flat = F.reshape(N, -1)
    f_star, best = flat.max(1)
    strides = [g ** (d - 1 - k) for k in range(d)]
    x_star = F.new_empty(N, d)
    for k, stride in enumerate(strides):
        index = best // stride % g
        centre = index.clamp(1, g - 2)
        at = best + (centre - index) * stride
        left, middle, right = (
            flat.gather(1, (at + shift)[:, None])[:, 0] for shift in (-stride, 0, stride)
        )
        slope, curvature = 0.5 * (right - left), left - 2 * middle + right
        vertex = torch.where(curvature < 0, centre - slope / curvature, index)
        # The best grid point stays the nearest one, and the cube ends at its faces.
        place = vertex.clamp(index - 0.5, index + 0.5).clamp(0, g - 1)
        x_star[:, k] = place / (g - 1)
        offset, start = place - centre, index - centre
        f_star = f_star + slope * (offset - start)
        f_star = f_star + 0.5 * curvature * (offset.square() - start.square())
    return x_star, f_star
