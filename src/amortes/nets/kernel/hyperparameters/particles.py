"""The posterior over Gaussian-process hyperparameters, as a few weighted particles.

`inference` finds them, with the tools that are here. Candidates are quasi-random normal points, as
they are for the prior and moved for the surroundings of modes; `thin` chooses as many of them as
are wanted. Modes of the log posterior are climbed to from several starts at once,

    step  (F + damping I)^-1 gradient,    F being the information of `hyper_posterior`.

Damping follows the rise of a step as a share of the rise that was predicted (Nocedal & Wright,
Numerical Optimization, 2006, chapter 4).

Shapes: b datasets, k particles, r x s climbs, p coordinates of z.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import ConfigError, require_least
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior
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
# Norm of the gradient of the log posterior that is too much for a mode (docs/log.md, 2026-11-17).
STEEP = 1.0
# How many times the rise of its next step a climb may hope for.
HOPE = 10.0
# Shares of the predicted rise above which there is less damping, and below which there is more.
GOOD, POOR = 0.6, 0.2
# The mode is looked for within so many standard deviations of the prior.
FURTHEST = 5.0
# Nats of log posterior or evidence below the best that are of no account.
NEGLIGIBLE = 8.0
# Coordinates of z by which two modes differ at least.
APART = 0.5


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
    candidates: int = 4  # for each of these, of small datasets: docs/log.md, 2026-11-20
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


class Climbs(NamedTuple):
    """The modes that s climbs have found for each of r datasets."""

    posterior: HyperPosterior
    mode: Array  # r x s x p
    factor: Array  # r x s x p x p, Cholesky factors of the information there
    value: Array  # r x s, the log posterior there
    log_evidence: Array  # r, by Laplace's approximation at the best of them

    @classmethod
    def of(cls, posterior: HyperPosterior, starts: Array, steps: int) -> Self:
        """From `starts`, `r x s x p`."""
        r, s, p = starts.shape
        each = posterior.rows(np.arange(r).repeat(s))
        climbs = find_modes(each, starts.reshape(r * s, p), steps, rivals=s)
        factor: Array = np.linalg.cholesky(climbs.information).astype(np.float64, copy=False)
        volume = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
        log_evidence = (climbs.value - volume).reshape(r, s).max(-1)
        mode, value = climbs.mode.reshape(r, s, p), climbs.value.reshape(r, s)
        return cls(posterior, mode, factor.reshape(r, s, p, p), value, log_evidence)

    def distinct(self) -> Array:
        """The modes, best first: `r x s x p`.

        Those of no account, or the same as a better one, are replaced by the best, at the end.
        """
        found = np.empty_like(self.mode)
        for row, (mode, value) in enumerate(zip(self.mode, self.value, strict=True)):
            best, *others = np.argsort(-value)
            kept = [best]
            for i in others:
                apart = min(np.abs(mode[i] - mode[j]).max() for j in kept) > APART
                if apart and value[i] > value[best] - NEGLIGIBLE:
                    kept.append(i)
            found[row] = mode[kept + [best] * (len(mode) - len(kept))]
        return found

    def rows(self, index: NDArray[np.intp]) -> "Climbs":
        """Those of some rows."""
        return Climbs(
            self.posterior.rows(index),
            self.mode[index],
            self.factor[index],
            self.value[index],
            self.log_evidence[index],
        )


class Modes(NamedTuple):
    """Where climbs have ended."""

    mode: Array  # b x p
    information: Array  # b x p x p
    value: Array  # b, the log posterior there


def find_modes(posterior: HyperPosterior, start: Array, steps: int, rivals: int = 1) -> Modes:
    """Modes by damped Fisher scoring from `start`, `b x p`.

    Damping follows the rise of a step as a share of the rise that was predicted: else steps jump to
    and fro across flat valleys of short lengthscales. A climb ends where it is no longer `STEEP`.
    Without noise a step takes at most half a unit off its logarithm, and it may be a long one.
    Of each `rivals` climbs in turn, those that do not even promise to come near the best with
    `HOPE` times the rise of their next step end as well.
    """
    modes, informations = start.copy(), np.empty((*start.shape, start.shape[-1]))
    place, z = np.arange(len(start)), start
    value, gradient, information = posterior.derivatives(z)
    values = value.copy()
    damping = np.full_like(value, 0.1)
    eye = np.eye(z.shape[-1])
    part = posterior
    for _ in range(steps):
        free = (np.abs(z) < FURTHEST) | (gradient * z < 0.0)
        gradient = np.where(free, gradient, 0.0)
        damped = information + damping[:, None, None] * eye
        step = np.linalg.solve(damped, gradient[..., None])[..., 0]
        going = np.square(gradient).sum(-1) > STEEP**2
        if rivals > 1:
            best = values.reshape(-1, rivals).max(-1).repeat(rivals)[place]
            going &= value + HOPE * (gradient * step).sum(-1) > best - NEGLIGIBLE
        if not going.all():
            modes[place], informations[place] = z, information
            climbing = (place, z, value, gradient, information, damping, step)
            place, z, value, gradient, information, damping, step = (t[going] for t in climbing)
            if len(place) == 0:
                break
            part = posterior.rows(place)
        step = step * (2.0 / np.maximum(np.linalg.norm(step, axis=-1, keepdims=True), 2.0))
        z_new = np.clip(z + step, -FURTHEST, FURTHEST)
        value_new, gradient_new, information_new = part.derivatives(z_new)
        step, rise = z_new - z, value_new - value
        bend = (step[:, None] @ information @ step[..., None])[:, 0, 0]
        share = rise / np.maximum((gradient * step).sum(-1) - 0.5 * bend, 1e-12)
        better = rise >= 0.0
        more = np.where(better, 4.0, 8.0) * np.maximum(damping, 1.0)
        less = np.where(share > GOOD, 0.2 * damping, damping)
        damping = np.clip(np.where(share > POOR, less, more), 1e-4, 1e6)
        value = np.where(better, value_new, value)
        z = np.where(better[:, None], z_new, z)
        gradient = np.where(better[:, None], gradient_new, gradient)
        information = np.where(better[:, None, None], information_new, information)
        values[place] = value
    modes[place], informations[place] = z, information
    return Modes(modes, informations, values)


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
