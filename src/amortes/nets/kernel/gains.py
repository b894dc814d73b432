"""Information gains: what draws of the optimum would tell about a query.

    gain(x) = H[y | D, x] - mean over draws s of H[y | D, x, I_s],    I = x*, f*, or both.

Conditioning on the draws is in closed form (`optimum`, `max_value`) and done once for a dataset.
Nothing is computed for a gain until it is asked for.

Entropies of mixtures over particles are rough, but cheap and smooth, from the overlaps of pairs:

    H ~ sum_i w_i ( H_i - log sum_j w_j o_ij ),    o_ij = ∫ sqrt(p_i p_j),

exact if components are equal or far apart, and never more than the entropy (Kolchinsky & Tracey,
Estimating mixture entropy with pairwise distances, Entropy 19(7), 2017). There are no nodes, so
narrow components inside wide ones are no trouble. With t = v_i + v_j and q = v^(1/4),

    o_ij = q_i q_j sqrt(2 / t) exp(-(m_i - m_j)^2 / 4t).

What is known before is the average of what is known after. So the weights w_ks of particles given a
draw must average to those without any, w_k, over draws. Approximate evidence e_ks breaks that, and
gains would then be about what the approximation happens to prefer. One factor for each particle,

    w_ks = c_k w_k e_ks / sum_l c_l w_l e_ls,    mean over s of w_ks = w_k,

mends it; the c_k are found by scaling in turn (Sinkhorn & Knopp, 1967, Pacific J. Math. 21).

Shapes: b datasets, k particles, s draws, q queries, J Gaussians, d dimensions.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes.nets.base import Hint
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.local_maximum import LocalMaximum, local_maximum
from amortes.nets.kernel.max_value import GivenMaximum
from amortes.nets.kernel.numpy_kernels import QUIET, Array, PullBack, differentiable
from amortes.nets.kernel.optimum import GivenOptimum, TruncatedMoments
from amortes.nets.kernel.representers import ThompsonDraws

# Representer points, the likeliest to be the highest, that are considered when x* is known.
POINTS = 16
# Scalings, and how much of a factor one may change, in nats.
SCALINGS, LARGEST = 40, 3.0
# Particles, draws and queries at once: their columns (`optimum`) take some 1 MB.
CHUNK = 1 << 13
ENTROPY_OF_NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)
SMALLEST = 1e-30


@dataclass(frozen=True)
class Gains:
    """Of s draws of the optimum of each dataset."""

    conditioned: Conditioned
    draws: ThompsonDraws
    _given: dict[str, tuple[TruncatedMoments | GivenMaximum, Array]] = field(default_factory=dict)

    def at(self, name: str, Xq: Tensor) -> Tensor:
        """The gain of that name from each draw, in nats, at Xq, `b x q x d`: `b x q x s`.

        The acquisition value is the mean over draws.
        """
        gradient = torch.is_grad_enabled() and Xq.requires_grad
        (gains,) = differentiable(lambda X: self.forward(name, X, gradient=gradient), Xq)
        return gains.mT

    @QUIET
    def mean_with_gradient(self, name: str, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """The mean over draws and its gradient by Xq, `b x q` and `b x q x d`, without a graph."""
        (gains,), pull_back = self.forward(name, Xq.numpy(), gradient=True)
        share = np.full(gains.shape, 1.0 / gains.shape[1])
        return torch.from_numpy(gains.mean(1)), torch.from_numpy(pull_back(share))

    def forward(self, name: str, X: Array, *, gradient: bool) -> tuple[tuple[Array], PullBack]:
        """`at` with queries last, `b x s x q`, and its derivatives, only with `gradient`."""
        count = max(1, CHUNK // (self.draws.optima.f.numel() * self.draws.maximum.shape[1]))
        values, pulls = [], []
        for i in range(0, X.shape[1], count):
            gains, pull = self._some(name, X[:, i : i + count], gradient=gradient)
            values.append(gains)
            if gradient:
                pulls.append(pull)
            del pull  # it keeps all temporaries: memory that the next queries can use

        def pull_back(by_gain: Array) -> Array:
            some = np.split(by_gain, range(count, X.shape[1], count), axis=-1)
            return np.concatenate([pull(by) for pull, by in zip(pulls, some, strict=True)], axis=1)

        return (np.concatenate(values, axis=-1),), pull_back

    def _some(self, name: str, X: Array, *, gradient: bool) -> tuple[Array, PullBack]:
        """`forward` at queries whose temporaries fit the cache."""
        given, weights = self.given(name)
        (mean, variance, m, v), pull_back_given = given.forward(X)
        # No hint counts as one more.
        m = np.concatenate([m, mean[:, :, None]], axis=2)  # b x k x (s + 1) x q
        v = np.concatenate([v, variance[:, :, None]], axis=2)
        v += self.conditioned.noise_variance.numpy()[..., None, None]
        entropy, slope_m, slope_v = overlap_entropy(weights, m, v, gradient=gradient)

        def pull_back(by_gain: Array) -> Array:
            by_entropy = np.concatenate([-by_gain, by_gain.sum(1, keepdims=True)], axis=1)
            by_m, by_v = (by_entropy[:, None] * slope for slope in (slope_m, slope_v))
            return pull_back_given(by_m[:, :, -1], by_v[:, :, -1], by_m[:, :, :-1], by_v[:, :, :-1])

        return entropy[:, -1:] - entropy[:, :-1], pull_back

    def given(self, name: str) -> tuple[TruncatedMoments | GivenMaximum, Array]:
        """The posterior given what that gain is about, and the particles' weights.

        These are given each draw and, last, without any: `b x k x (s + 1) x 1`.
        """
        if name not in self._given:
            self._given[name] = self._condition(name)
        return self._given[name]

    @torch.inference_mode(False)  # kept for calls that need gradients
    @torch.no_grad()
    def _condition(self, name: str) -> tuple[TruncatedMoments | GivenMaximum, Array]:
        f, before = self.draws.optima.f, self.conditioned.particles.log_weights[..., None]
        found: TruncatedMoments | GivenMaximum
        if name == "mes":
            found = GivenMaximum.of(self.conditioned, self.draws, f, places=1)
            evidence = found.log_evidence.squeeze(-1)
        else:
            optimum = GivenOptimum.of(self._local, f if name == "jes" else None)
            found, evidence = TruncatedMoments(optimum), optimum.log_evidence
        weights = torch.cat([balanced(before, evidence), before], dim=-1)
        return found, weights.exp()[..., None].numpy()

    @cached_property
    def _local(self) -> LocalMaximum:
        points = self.draws.likeliest(self.conditioned, POINTS)
        return local_maximum(self.conditioned, points, self.draws.optima.x)


def balanced(log_weights: Tensor, log_evidence: Tensor) -> Tensor:
    """Logarithms of the weights given each draw, `b x k x s`, that average to those without any.

    log_weights `b x k x 1`, log_evidence `b x k x s`.
    """
    log_factor, log_count = torch.zeros_like(log_weights), math.log(log_evidence.shape[-1])
    for _ in range(SCALINGS):
        each = (log_weights + log_evidence + log_factor).log_softmax(1)
        off = log_weights - (each.logsumexp(-1, keepdim=True) - log_count)
        log_factor = log_factor + off.clamp(-LARGEST, LARGEST)
    return (log_weights + log_evidence + log_factor).log_softmax(1)


def overlap_entropy(
    weights: Array, means: Array, variances: Array, *, gradient: bool
) -> tuple[Array, Array, Array]:
    """Entropies `b x ...` in nats of mixtures `b x k x ...`; weights may broadcast.

    With their derivatives by means and variances, `b x k x ...`; zeros unless there is `gradient`.
    """
    w, m, v = weights, means, variances
    i, j, of_i, of_j = _pairs(m.shape[1])
    root = np.sqrt(np.sqrt(v))
    per_total = 1.0 / (v[:, i] + v[:, j])  # b x pairs x ...
    away = m[:, i] - m[:, j]
    square = np.square(away)
    square *= per_total
    overlap = np.sqrt(2.0 * per_total)
    overlap *= root[:, i]
    overlap *= root[:, j]
    overlap *= np.exp(-0.25 * square)
    w_i, w_j = w[:, i], w[:, j]
    density = _summed(of_i, overlap * w_j) + _summed(of_j, overlap * w_i)
    density += w
    np.maximum(density, SMALLEST, out=density)
    H = ENTROPY_OF_NORMAL + (w * (0.5 * np.log(v) - np.log(density))).sum(1)
    if not gradient:
        return H, np.zeros(()), np.zeros(())
    share = w / density
    share_i, share_j = share[:, i], share[:, j]
    share_i *= w_j
    share_j *= w_i
    share_i += share_j
    overlap *= share_i  # now the derivative of -H by each log overlap
    away *= per_total
    away *= overlap
    by_mean = 0.5 * _summed(of_i - of_j, away)
    square *= 0.25
    square -= 0.5
    square *= per_total
    square *= overlap
    both = of_i + of_j
    by_variance = (0.5 * w - 0.25 * _summed(both, overlap)) / v - _summed(both, square)
    return H, by_mean, by_variance


def _summed(A: Array, of_pairs: Array) -> Array:
    """Sums with factors A, `k x pairs`, of what each pair has, `b x pairs x ...`: `b x k x ...`."""
    b, pairs, *shape = of_pairs.shape
    flat = of_pairs.reshape(b, pairs, math.prod(shape))
    return (A @ flat).reshape(b, len(A), *shape)


@lru_cache(maxsize=64)
def _pairs(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """All pairs i < j of k, and which of the k is the i and the j of each: `k x pairs`."""
    i, j = np.triu_indices(k, 1)
    one = np.eye(k)
    return i, j, one[:, i], one[:, j]


def given_hint(
    conditioned: Conditioned, Xq: Tensor, hint: Hint, draws: ThompsonDraws
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, sd and log evidence of J Gaussians for f at Xq, `b x q x d`, given the hint.

    The first two are `b x k x q x J`; the evidence, of the particle and within it of the component,
    broadcasts to that.
    """
    f = None if hint.f is None else hint.f[:, None]
    if hint.x is None:
        assert f is not None
        maximum = GivenMaximum.of(conditioned, draws, f)
        _, _, mean, variance = maximum.posterior(Xq)
        return mean.squeeze(3), variance.squeeze(3).sqrt(), maximum.log_evidence
    local = local_maximum(conditioned, draws.representers, hint.x[:, None])
    with torch.no_grad():
        optimum = GivenOptimum.of(local, f)
        known = TruncatedMoments(optimum)
    _, _, mean, variance = known.posterior(Xq)
    return mean, variance.sqrt(), optimum.log_evidence[..., None]
