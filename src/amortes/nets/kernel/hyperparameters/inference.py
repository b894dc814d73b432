"""Inference of Gaussian-process hyperparameters, as a few weighted particles.

1. *Screen.* The log posterior, L(z) of `hyper_posterior`, is computed at points of the Gaussian
   that a trained network proposes (`encoder`), at some of the prior, and at two fixed points: a few
   results are often explained by a smooth function with much noise, and as well by a rough one with
   little. If there are several ways to see the results (powers of them), this decides which to
   begin with: one factorisation of a covariance serves all.
2. *Climb* (`particles.Climbs`) from the best of these points and from the fixed ones, for all
   models of the prior in one batch.
3. *Weigh.* Around the modes fixed quasi-random normal points are sent through F^(-1/2), F being
   the information, slightly inflated. With the points of the prior, which for tiny datasets are
   better than any approximation around a mode, and of the encoder they are candidates, weighted by
   posterior over proposal density, that of the whole mixture, and thinned to as many particles as
   are wanted. If they find other results of those alternatives likelier, climbs go on for these.

If modes for most of the same data are known, a few steps from these replace the first two parts.

No Markov chain, no random numbers: milliseconds.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes.nets.kernel.hyperparameters.encoder import to_posterior_order
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior, hyperparameters
from amortes.nets.kernel.hyperparameters.particles import (
    NEGLIGIBLE,
    Climbs,
    ParticleConfig,
    Particles,
    normal_points,
    thin,
)
from amortes.nets.kernel.numpy_kernels import Array
from amortes.prior.gp import GPPrior, Hyperparameters

# Where climbs begin: z of all lengthscales, of the noise, and of the roughness; the rest at 0.
STARTS = ((0.5, 1.5, -1.0), (-1.0, -1.0, 0.0))
# Nats of evidence that make climbs for another alternative worth while, and how many are tried.
WORTH, MOST_TRIED = 0.5, 4
# Steps of a climb from a mode of most of the same data, at most.
FOLLOWING_STEPS = 4
# Datasets are worked on in groups whose derivative matrices stay in the cache.
CACHE_BYTES = 2 << 20


def infer_particles(prior: GPPrior, X: Tensor, y: Tensor, config: ParticleConfig) -> Particles:
    """Weighted hyperparameters for X, `b x n x d`, y, `b x n` (float64)."""
    return infer(prior, X, y[:, None], torch.zeros_like(y[:, :1]), config).particles


class Inferred(NamedTuple):
    """What `infer` finds."""

    particles: Particles
    root: Tensor  # b x k x n x n, Cholesky factors of the observations' covariances
    choice: Tensor  # b, which of the alternatives
    modes: Array  # b x M x s x p, where climbs have ended for each model of the prior


def infer(
    prior: GPPrior,
    X: Tensor,
    Y: Tensor,
    bonus: Tensor,
    config: ParticleConfig,
    guess: Sequence[tuple[Tensor, Tensor]] | None = None,
    modes: Array | None = None,
) -> Inferred:
    """Weighted hyperparameters for X, `b x n x d`, and the likeliest of alternatives Y.

    Y, `b x m x n`, are m ways to see the results; `bonus`, `b x m`, adds to the evidence of each.
    `guess` are the encoder's proposals, for each model of the prior: mean and log sd of z. `modes`
    are those that were inferred from most of the same data: a few steps follow them, for the first
    of the alternatives.
    """
    _, n, d = X.shape
    group = max(1, CACHE_BYTES // (16 * prior.latent_size(d) * n * n)) if Y.shape[1] == 1 else 1
    guesses = None
    if guess is not None:
        pairs = [[to_posterior_order(prior, t.to(X), d) for t in pair] for pair in guess]
        mean, log_sd = (torch.stack(each, dim=1).numpy() for each in zip(*pairs, strict=True))
        guesses = Guess(mean, log_sd)
    parts = []
    for i in range(0, len(X), group):
        rows = slice(i, i + group)
        some = None if guesses is None else Guess(guesses.mean[rows], guesses.log_sd[rows])
        known = None if modes is None else modes[rows]
        data = X[rows].numpy(), Y[rows].numpy(), bonus[rows].numpy()
        with np.errstate(all="ignore"):
            parts.append(_infer(prior, *data, config, some, known))
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
        np.concatenate([part.modes for part in parts]),
    )


class Guess(NamedTuple):
    """Diagonal Gaussians over z, as an encoder proposes them for each of M models."""

    mean: Array  # b x M x p
    log_sd: Array  # b x M x p


def _infer(
    prior: GPPrior,
    X: Array,
    Y: Array,
    bonus: Array,
    config: ParticleConfig,
    guess: Guess | None,
    modes: Array | None,
) -> Inferred:
    """Of several datasets, or of one of which there are alternatives.

    Every dataset is there once for each of the M models of the prior: r = b M rows. If the
    candidates find another alternative likelier than the one climbed for, climbs go on for that.
    """
    b, M = len(X), len(prior.models)
    row = np.arange(b).repeat(M)
    shares = np.log([share for share, _ in prior.models])
    warped = np.tile([model.warped for _, model in prior.models], b)
    posterior = HyperPosterior(prior, X[row], Y[row, 0], warped)
    if guess is not None:
        guess = Guess(*(t.reshape(b * M, -1) for t in guess))
    if modes is None:
        screen = _Screen.of(posterior, Y[row], config, guess)
        height = screen.density.max(1).reshape(b, M, -1) + shares[:, None]
        choice, steps = (height.max(1) + bonus).argmax(-1), config.steps  # b
        starts = screen.starts(choice[row])
    else:
        screen = _Screen.empty(posterior, Y.shape[1])
        choice, steps = np.zeros(b, dtype=np.intp), FOLLOWING_STEPS
        starts = modes.reshape(b * M, *modes.shape[2:])
        different = (starts != starts[:, :1]).any(-1).sum(-1).max()
        starts = starts[:, : 1 + different]
    tried: dict[int, tuple[float, Inferred]] = {}
    while True:
        fit = posterior.with_results(Y[row, choice[row]])
        climbs = Climbs.of(fit, starts, steps)
        inferred, evidence = _weigh(climbs, screen, Y, choice, shares, config)
        if Y.shape[1] == 1:
            return inferred
        (now,), (values,) = choice.tolist(), (evidence + bonus).tolist()
        tried[now] = values[now], inferred
        leader, best = max(value for value, _ in tried.values()), int(np.argmax(values))
        if best in tried or values[best] < leader + WORTH or len(tried) == MOST_TRIED:
            return max(tried.values(), key=lambda pair: pair[0])[1]
        choice, starts = np.array([best]), climbs.mode


def _weigh(
    climbs: Climbs,
    screen: "_Screen",
    Y: Array,
    choice: NDArray[np.intp],
    shares: Array,
    config: ParticleConfig,
) -> tuple[Inferred, Array]:
    """Particles of all models, weighed together, and the log evidence of all alternatives.

    A model whose evidence, by Laplace's approximation, is negligible for all datasets has none.
    """
    b, M = len(Y), len(shares)
    modes = climbs.distinct().reshape(b, M, *climbs.mode.shape[1:])
    rough = climbs.log_evidence.reshape(b, M) + shares
    close = (rough > rough.max(-1, keepdims=True) - NEGLIGIBLE).any(0)
    if not close.all():
        index, shares = np.tile(close, b).nonzero()[0], shares[close]
        climbs, screen, M = climbs.rows(index), screen.rows(index), len(shares)
    posterior, row = climbs.posterior, np.arange(b).repeat(M)
    z, root, log_proposal = _candidates(climbs, screen, config)  # r x c x p, ...
    c = z.shape[1]
    # By noise, so that neighbours, of which few are kept, are alike in what matters most.
    order = z[..., posterior.d + 1].argsort(-1)
    log_ratio = posterior.log_density(z, root, Y[row]) - log_proposal[..., None]
    log_ratio += np.tile(shares, b)[:, None, None] - math.log(c)
    each = np.take_along_axis(log_ratio[np.arange(b * M), :, choice[row]], order, 1)
    ratios = torch.from_numpy(each.reshape(b, M * c))
    log_evidence, log_weights = ratios.logsumexp(-1), ratios.log_softmax(-1)
    kept = torch.arange(M * c).expand(b, -1)
    if M * c > config.kept(posterior.n):
        kept, log_weights = thin(log_weights, config.kept(posterior.n))
    # Which of the candidates of all models of a dataset these are.
    first = np.tile(np.arange(M) * c, b)[:, None]
    place = np.take_along_axis((order + first).reshape(b, M * c), kept.numpy(), 1)
    rows = np.arange(b)[:, None]
    warped = posterior.warped.repeat(c).reshape(b, M * c)[rows, place]
    hyper = hyperparameters(
        posterior.prior, z.reshape(b, M * c, -1)[rows, place], posterior.d, warped
    )
    chosen = torch.from_numpy(root.reshape(b, M * c, *root.shape[2:])[rows, place])
    inferred = Inferred(
        Particles(hyper, log_weights, log_evidence), chosen, torch.from_numpy(choice), modes
    )
    return inferred, _log_sum_exp(log_ratio.reshape(b, M * c, -1))


class _Screen(NamedTuple):
    """Points that are looked at before any climb, and how likely the alternatives are there.

    First those from the prior, then those of the encoder's Gaussian, which are candidates as well;
    then its mean and the fixed starts, which are not.
    """

    guess: Guess | None  # r x p
    z: Array  # r x s x p
    root: Array  # r x s x n x n
    density: Array  # r x s x m
    counts: tuple[int, int]  # of points from the prior, and from the encoder

    @classmethod
    def of(
        cls, posterior: HyperPosterior, Y: Array, config: ParticleConfig, guess: Guess | None
    ) -> Self:
        """For alternatives Y, `r x m x n`."""
        r, n, p = posterior.b, posterior.n, posterior.p
        counts = config.from_prior(n), 0 if guess is None else config.from_guess
        normals = normal_points(p, sum(counts)).numpy()
        groups = [np.broadcast_to(normals[: counts[0]], (r, counts[0], p))]
        if guess is not None:
            mean = guess.mean[:, None]
            groups += [mean + np.exp(guess.log_sd)[:, None] * normals[counts[0] :], mean]
        fixed = _starts(posterior)
        groups.append(np.broadcast_to(fixed, (r, *fixed.shape)))
        z = np.concatenate(groups, axis=1) * posterior.active[:, None]
        root = posterior.root(z)
        return cls(guess, z, root, posterior.log_density(z, root, Y), counts)

    @classmethod
    def empty(cls, posterior: HyperPosterior, alternatives: int) -> Self:
        """No points at all."""
        r, n, p = posterior.b, posterior.n, posterior.p
        none = np.empty((r, 0, p)), np.empty((r, 0, n, n)), np.empty((r, 0, alternatives))
        return cls(None, *none, (0, 0))

    def starts(self, choice: NDArray[np.intp]) -> Array:
        """Where climbs for alternative `choice`, `r`, begin: `r x (1 + fixed) x p`.

        At the likeliest point, and at the fixed ones.
        """
        fixed, rows = len(STARTS), np.arange(len(choice))
        best = self.density[rows, :-fixed, choice].argmax(-1)
        return np.concatenate([self.z[rows, best][:, None], self.z[:, -fixed:]], axis=1)

    def rows(self, index: NDArray[np.intp]) -> "_Screen":
        """Those of some rows."""
        guess = None if self.guess is None else Guess(*(t[index] for t in self.guess))
        return _Screen(guess, self.z[index], self.root[index], self.density[index], self.counts)


def _candidates(
    climbs: Climbs, screen: _Screen, config: ParticleConfig
) -> tuple[Array, Array, Array]:
    """Points z, `r x c x p`, their Cholesky factors, and the log density they are drawn from.

    That is up to a constant.
    """
    posterior, factor = climbs.posterior, climbs.factor
    guess, counts = screen.guess, [count for count in screen.counts if count]
    s, mode = climbs.mode.shape[1], climbs.mode[:, :, None]
    size = posterior.active.sum(-1)  # r, of z
    inflation = config.inflation_for(size)[:, None, None]
    local = normal_points(posterior.p, config.local(posterior.n)).numpy()
    local = inflation * local * posterior.active[:, None]  # r x c x p
    groups = []
    for i in range(s):
        shift = np.linalg.solve(factor[:, i].swapaxes(1, 2), local[:, i::s].swapaxes(1, 2))
        groups.append(mode[:, i] + shift.swapaxes(1, 2))
    near = np.concatenate(groups, axis=1)
    seen = sum(counts)
    z = np.concatenate([screen.z[:, :seen], near], axis=1)  # r x c x p
    root = np.concatenate([screen.root[:, :seen], posterior.root(near)], axis=1)
    densities = []
    if screen.counts[0]:
        densities.append(-0.5 * np.square(z).sum(-1)[:, None])
    if guess is not None:
        log_sd = guess.log_sd * posterior.active
        off = (z - guess.mean[:, None]) * (np.exp(-log_sd) * posterior.active)[:, None]
        densities.append((-0.5 * np.square(off).sum(-1) - log_sd.sum(-1)[:, None])[:, None])
    whitened = (z[:, None] - mode) @ factor / inflation[..., None]  # r x s x c x p
    log_det = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    log_det = log_det - (size * np.log(inflation[:, 0, 0]))[:, None]
    densities.append(log_det[..., None] - 0.5 * np.square(whitened).sum(-1))
    shares = np.array([*counts, *(group.shape[1] for group in groups)]) / z.shape[1]
    mixture = np.concatenate(densities, axis=1) + np.log(np.maximum(shares, 1e-300))[:, None]
    return z, root, _log_sum_exp(mixture)


def _log_sum_exp(terms: Array) -> Array:
    """log of the sum of e^terms over the second dimension."""
    top = terms.max(1)
    total: Array = top + np.log(np.exp(terms - top[:, None]).sum(1))
    return total


def _starts(posterior: HyperPosterior) -> Array:
    """Where climbs begin whatever the data: `s x p`."""
    d, values = posterior.d, np.array(STARTS)
    start = np.zeros((len(values), posterior.p))
    start[:, :d], start[:, d + 1] = values[:, :1], values[:, 1]
    if posterior.prior.kernel == "mixed":
        start[:, -1] = values[:, 2]
    return start
