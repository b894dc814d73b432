"""The posterior over Gaussian-process hyperparameters, as a few weighted particles.

1. *Screen.* The log posterior, L(z) of `hyper_posterior`, is computed at points of the Gaussian
   that a trained network proposes (`encoder`), at some of the prior, and at two fixed points: a few
   results are often explained by a smooth function with much noise, and as well by a rough one with
   little. If there are several ways to see the results (powers of them), this decides which:
   one factorisation of a covariance serves all.
2. *Climb* (`modes`) from the best of these points and from the fixed ones.
3. *Weigh.* Around the modes fixed quasi-random normal points are sent through F^(-1/2), F being
   the information, slightly inflated. With the points of the prior, which for tiny datasets are
   better than any approximation around a mode, and of the encoder they are candidates, weighted by
   posterior over proposal density, that of the whole mixture, and thinned to as many particles as
   are wanted.

No Markov chain, no random numbers: milliseconds.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import ConfigError, require_least
from amortes.nets.kernel.encoder import to_posterior_order
from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.nets.kernel.modes import NEGLIGIBLE, find_modes
from amortes.prior.gp import GPPrior, Hyperparameters

# Where climbs begin: z of all lengthscales, of the noise, and of the roughness; the rest at 0.
STARTS = ((0.5, 1.5, -1.0), (-1.0, -1.0, 0.0))
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
# Datasets are worked on in groups whose derivative matrices stay in the cache.
CACHE_BYTES = 2 << 20


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

    def inflation_for(self, p: int) -> float:
        """The inflation for p coordinates: that costs the same share of the particles for all p."""
        return 1.0 + (self.inflation - 1.0) * math.sqrt(min(1.0, FEW_LATENTS / p))


def infer_particles(prior: GPPrior, X: Tensor, y: Tensor, config: ParticleConfig) -> Particles:
    """Weighted hyperparameters for X, `b x n x d`, y, `b x n` (float64)."""
    return infer(prior, X, y[:, None], torch.zeros_like(y[:, :1]), config).particles


class Inferred(NamedTuple):
    """What `infer` finds."""

    particles: Particles
    root: Tensor  # b x k x n x n, Cholesky factors of the observations' covariances
    choice: Tensor  # b, which of the alternatives


def infer(
    prior: GPPrior,
    X: Tensor,
    Y: Tensor,
    bonus: Tensor,
    config: ParticleConfig,
    guess: Sequence[tuple[Tensor, Tensor]] | None = None,
) -> Inferred:
    """Weighted hyperparameters for X, `b x n x d`, and the likeliest of alternatives Y.

    Y, `b x m x n`, are m ways to see the results; `bonus`, `b x m`, adds to the evidence of each.
    `guess` are the encoder's proposals, for each model of the prior: mean and log sd of z.
    """
    _, n, d = X.shape
    models = prior.models
    group = max(1, CACHE_BYTES // (16 * prior.latent_size(d) * n * n))
    parts = []
    for i in range(0, len(X), group):
        rows = slice(i, i + group)
        guesses: list[Guess | None] = [None] * len(models)
        if guess is not None:
            guesses = [
                Guess(*(to_posterior_order(model, t[rows].to(X), d) for t in pair))
                for (_, model), pair in zip(models, guess, strict=True)
            ]
        parts.append(_infer(models, X[rows], Y[rows], bonus[rows], config, guesses))
    if len(parts) == 1:
        return parts[0]
    return Inferred(
        Particles(
            Hyperparameters.cat([part.particles.hyper for part in parts]),
            torch.cat([part.particles.log_weights for part in parts]),
            torch.cat([part.particles.log_evidence for part in parts]),
        ),
        torch.cat([part.root for part in parts]),
        torch.cat([part.choice for part in parts]),
    )


class Guess(NamedTuple):
    """A diagonal Gaussian over z, as an encoder proposes it."""

    mean: Tensor  # b x p
    log_sd: Tensor  # b x p


def _infer(
    models: Sequence[tuple[float, GPPrior]],
    X: Tensor,
    Y: Tensor,
    bonus: Tensor,
    config: ParticleConfig,
    guesses: Sequence[Guess | None],
) -> Inferred:
    """Of a prior that is a mixture: particles of each of its models, weighed by their evidence.

    A model whose evidence, by Laplace's approximation, is negligible for all datasets has none.
    """
    shares = X.new_tensor([share for share, _ in models]).log()
    screens = [
        _Screen.of(HyperPosterior(model, X, Y[:, 0]), Y, config, guess)
        for (_, model), guess in zip(models, guesses, strict=True)
    ]
    heights = [s.density.amax(1) + share for s, share in zip(screens, shares, strict=True)]
    choice = (torch.stack(heights).amax(0) + bonus).argmax(-1)  # b
    y = Y[torch.arange(len(Y)), choice]
    climbs = [
        _Climb.of(HyperPosterior(model, X, y), screen, choice, config)
        for (_, model), screen in zip(models, screens, strict=True)
    ]
    rough = torch.stack([climb.log_evidence for climb in climbs], dim=-1) + shares  # b x models
    close = (rough > rough.amax(-1, keepdim=True) - NEGLIGIBLE).any(0).tolist()
    parts = [_particles(climb, config) for climb, near in zip(climbs, close, strict=True) if near]
    shares = shares[torch.tensor(close)]
    evidence = torch.stack([p.log_evidence for p, _ in parts], dim=-1) + shares
    if len(parts) == 1:
        only, root = parts[0]
        return Inferred(dataclasses.replace(only, log_evidence=evidence[:, 0]), root, choice)
    odds = evidence.log_softmax(-1)
    log_weights = torch.cat([p.log_weights + odds[:, i, None] for i, (p, _) in enumerate(parts)], 1)
    kept, log_weights = thin(log_weights, min(config.kept(X.shape[1]), log_weights.shape[1]))
    hyper = Hyperparameters.cat([p.hyper for p, _ in parts], dim=1)
    hyper = hyper[torch.arange(len(kept))[:, None], kept]
    root = _pick(torch.cat([root for _, root in parts], dim=1), kept)
    return Inferred(Particles(hyper, log_weights, evidence.logsumexp(-1)), root, choice)


class _Screen(NamedTuple):
    """Points that are looked at before any climb, and how likely the alternatives are there.

    First those from the prior, then those of the encoder's Gaussian, which are candidates as well;
    then its mean and the fixed starts, which are not.
    """

    guess: Guess | None
    z: Tensor  # b x s x p
    root: Tensor  # b x s x n x n
    density: Tensor  # b x s x m
    counts: tuple[int, int]  # of points from the prior, and from the encoder

    @classmethod
    def of(
        cls, posterior: HyperPosterior, Y: Tensor, config: ParticleConfig, guess: Guess | None
    ) -> Self:
        """For alternatives Y, `b x m x n`."""
        b, n, p = posterior.b, posterior.n, posterior.p
        counts = config.from_prior(n), 0 if guess is None else config.from_guess
        normals = normal_points(p, sum(counts)).to(posterior.X)
        from_prior, from_guess = torch.split_with_sizes(normals, counts)
        groups = [from_prior.expand(b, -1, -1)]
        fixed = _starts(posterior).expand(b, -1, -1)
        if guess is not None:
            mean = guess.mean[:, None]
            groups += [mean + guess.log_sd.exp()[:, None] * from_guess, mean]
        z = torch.cat([*groups, fixed], dim=1)
        root = posterior.root(z)
        return cls(guess, z, root, posterior.log_density(z, root, Y), counts)

    def starts(self, choice: Tensor) -> Tensor:
        """Where climbs for alternative `choice`, `b`, begin: `b x (1 + fixed) x p`.

        At the likeliest point, and at the fixed ones.
        """
        fixed = len(STARTS)
        density = self.density[torch.arange(len(choice)), :-fixed, choice]
        best = _pick(self.z, density.argmax(-1, keepdim=True))
        return torch.cat([best, self.z[:, -fixed:]], dim=1)


class _Climb(NamedTuple):
    """The modes that climbs of one model have found."""

    posterior: HyperPosterior
    screen: _Screen
    mode: Tensor  # b x s x p
    factor: Tensor  # b x s x p x p, Cholesky factors of the information there
    log_evidence: Tensor  # b, by Laplace's approximation at the best of them

    @classmethod
    def of(
        cls, posterior: HyperPosterior, screen: _Screen, choice: Tensor, config: ParticleConfig
    ) -> Self:
        """From the starts of a screen."""
        starts = screen.starts(choice)
        b, s, p = starts.shape
        rows = torch.arange(b).repeat_interleave(s)
        climbs = find_modes(posterior.rows(rows), starts.flatten(0, 1), config.steps, rivals=s)
        mode, factor = climbs.mode.reshape(b, s, p), torch.linalg.cholesky(climbs.information)
        volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_evidence = (climbs.value - volume).reshape(b, s).amax(-1)
        return cls(posterior, screen, mode, factor.reshape(b, s, p, p), log_evidence)


def _particles(climb: _Climb, config: ParticleConfig) -> tuple[Particles, Tensor]:
    """Those of one model, and the Cholesky factors of the observations' covariances."""
    posterior = climb.posterior
    z, root, log_proposal = _candidates(climb, config)
    # By noise, so that neighbours, of which few are kept, are alike in what matters most.
    order = z[..., posterior.d + 1].argsort(-1)
    log_ratio = (posterior.log_density(z, root) - log_proposal).gather(1, order)
    log_weights = log_ratio.log_softmax(-1)
    log_evidence = log_ratio.logsumexp(-1) - math.log(z.shape[1])
    count = config.kept(posterior.n)
    if z.shape[1] > count:
        kept, log_weights = thin(log_weights, count)
        order = order.gather(1, kept)
    hyper = posterior.hyperparameters(_pick(z, order))
    return Particles(hyper, log_weights, log_evidence), _pick(root, order)


def _pick(values: Tensor, rows: Tensor) -> Tensor:
    """Rows `b x k` of each of the values, `b x m x ...`."""
    return values[torch.arange(len(rows))[:, None], rows]


def _candidates(climb: _Climb, config: ParticleConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Points z, `b x c x p`, their Cholesky factors, and the log density they are drawn from.

    That is up to a constant.
    """
    posterior, screen, factor = climb.posterior, climb.screen, climb.factor
    guess, counts = screen.guess, [count for count in screen.counts if count]
    b, p = posterior.b, posterior.p
    s, mode = climb.mode.shape[1], climb.mode[:, :, None]
    inflation = config.inflation_for(p)
    local = normal_points(p, config.local(posterior.n)).to(posterior.X)
    groups = []
    for i in range(s):
        shift = torch.linalg.solve_triangular(
            factor[:, i].mT, inflation * local[i::s].T.expand(b, -1, -1), upper=True
        )
        groups.append(mode[:, i] + shift.mT)
    near = torch.cat(groups, dim=1)
    seen = sum(counts)
    z = torch.cat([screen.z[:, :seen], near], dim=1)  # b x c x p
    root = torch.cat([screen.root[:, :seen], posterior.root(near)], dim=1)
    densities = [-0.5 * z.square().sum(-1)[:, None]]
    if guess is not None:
        off = (z - guess.mean[:, None]) * (-guess.log_sd).exp()[:, None]
        log_sd = guess.log_sd.sum(-1, keepdim=True)
        densities.append((-0.5 * off.square().sum(-1) - log_sd)[:, None])
    whitened = (z[:, None] - mode) @ factor / inflation  # b x s x c x p
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - p * math.log(inflation)
    densities.append(log_det[..., None] - 0.5 * whitened.square().sum(-1))
    shares = z.new_tensor([*counts, *(len(group[0]) for group in groups)]) / z.shape[1]
    return z, root, (torch.cat(densities, dim=1) + shares.log()[:, None]).logsumexp(1)


def _starts(posterior: HyperPosterior) -> Tensor:
    """Where climbs begin whatever the data: `s x p`."""
    d, values = posterior.d, posterior.X.new_tensor(STARTS)
    start = values.new_zeros(len(values), posterior.p)
    start[:, :d], start[:, d + 1] = values[:, :1], values[:, 1]
    if posterior.prior.kernel == "mixed":
        start[:, -1] = values[:, 2]
    return start


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
