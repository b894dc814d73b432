"""The posterior over Gaussian-process hyperparameters, as a few weighted particles.

`inference` finds them. Here is how many there are, how many candidates they are chosen from, and
how candidates are thinned.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import ConfigError, require_least
from amortes.nets.kernel.numpy_kernels import Array
from amortes.prior.gp import Hyperparameters

# Points of a dataset up to which there are as many candidates as wanted.
FEW = 64
# Points up to which there are more particles: four times as many up to a quarter of this.
SMALL = 40
# Candidates from the prior, times n^3: of tiny datasets there are hundreds, better than any
# approximation around a mode; of larger ones none has any weight (docs/log.md, 2026-11-18).
FROM_PRIOR = 1_000_000
LEAST_FROM_PRIOR, MOST_FROM_PRIOR = 4, 512
# Coordinates of z for which proposals are inflated in full.
FEW_LATENTS = 8


@dataclass(frozen=True)
class Particles:
    """k weighted hyperparameter settings for each of b datasets."""

    hyper: Hyperparameters  # batch shape b x k; `mean` is the prior location of the mean
    log_weights: Tensor  # b x k, normalised
    log_evidence: Tensor  # b, logarithm of the density of y, all hyperparameters considered


@dataclass(frozen=True, kw_only=True)
class ParticleConfig:
    """Number of particles and effort; measured in docs/log.md, 2026-11-15 and 2026-11-17."""

    count: int = 16  # of large datasets; small ones, which cost little, have more
    candidates: int = 2  # for each of these, of small datasets
    inflation: float = 1.25  # of proposals with `FEW_LATENTS` coordinates
    from_guess: int = 8  # candidates from the encoder's Gaussian
    steps: int = 12  # of a climb, at most

    def __post_init__(self) -> None:
        require_least(self, count=1, candidates=1, from_guess=0, steps=0)
        if not (self.inflation > 0.0 and math.isfinite(self.inflation)):
            raise ConfigError(f"inflation: must be positive, not {self.inflation}.")

    def kept(self, n: int) -> int:
        """Number of particles for n points."""
        return self.count * max(1, min(4, SMALL // n))

    def local(self, n: int) -> int:
        """Number of candidates around modes for n points; the more of these, the more alike."""
        return self.count * max(1, min(self.candidates, self.candidates * FEW // n))

    def from_prior(self, n: int) -> int:
        """Number of candidates from the prior."""
        return min(MOST_FROM_PRIOR, max(LEAST_FROM_PRIOR, FROM_PRIOR // n**3))

    def inflation_for(self, p: Array) -> Array:
        """The inflation for p coordinates: that costs the same share of the particles for all p."""
        return 1.0 + (self.inflation - 1.0) * np.sqrt(np.minimum(1.0, FEW_LATENTS / p))


def thin(log_weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Which of m normalised weights to keep, `b x count`, and their new logarithms.

    Weights above a threshold stay as they are; of the others some are kept by systematic sampling,
    and given that threshold, which makes `count` of them in all. Of the ways to do so without bias
    it disturbs weights least (Fearnhead & Clifford, 2003, J. R. Stat. Soc. B 65).
    """
    # Not zero, lest there be fewer than `count`: that of a whole model of a mixture may underflow.
    weights = log_weights.exp().clamp_min(1e-300)
    largest = weights.sort(dim=-1, descending=True).values
    # If a weights stay, the others share count - a places: the threshold is where that fits.
    rest = largest.flip(-1).cumsum(-1).flip(-1)[:, :count]
    thresholds = rest / torch.arange(count, 0, -1)
    staying = (largest[:, :count] > thresholds).long().argmin(-1, keepdim=True)
    threshold = thresholds.gather(1, staying)  # b x 1
    chance = (weights / threshold).clamp_max(1.0)  # b x m, sums to count
    ticks = (torch.arange(count) + 0.5).to(weights).expand(len(weights), -1).contiguous()
    kept = torch.searchsorted(chance.cumsum(-1), ticks).clamp_max(weights.shape[1] - 1)
    chosen = weights.gather(1, kept).maximum(threshold)
    return kept, (chosen / chosen.sum(-1, keepdim=True)).log()


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
