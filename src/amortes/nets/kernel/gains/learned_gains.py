"""Information gains by a gain network, in one pass of it per query and no draws.

    gain(x) = H[y | D, x] - mean over optima I of H[y | D, x, I],    I = x*, f*, or both.

Entropies of mixtures over particles are rough, but cheap and smooth, from the overlaps of pairs:

    H ~ sum_i w_i ( H_i - log sum_j T_ij o_ij ),    o_ij = ∫ sqrt(p_i p_j),    T_ij = w_j,

exact if components are equal or far apart, and never more than the entropy (Kolchinsky & Tracey,
Estimating mixture entropy with pairwise distances, Entropy 19(7), 2017). There are no nodes, so
narrow components inside wide ones are no trouble. With t = v_i + v_j and q = v^(1/4),

    o_ij = q_i q_j sqrt(2 / t) exp(-(m_i - m_j)^2 / 4t).

Averaged over optima, with T_ij = M_ij / w_i the weight of j where i is right and the moments that
each expects to have: `gain_network` says what of this is learned, and that it is enough was
measured (docs/log.md, 2026-11-18). The optimum does not tell on average which particle is right, so
that w_i stays.

In NumPy with gradients by hand, for a search asks for some ten of them.

Shapes: b datasets, k particles, q queries, d dimensions.
"""

import math
from functools import lru_cache, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from amortes.nets.base import GAINS
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.gains.gain_features import GainFeatures
from amortes.nets.kernel.gains.gain_network import FURTHEST, GainNetwork
from amortes.nets.kernel.numpy_kernels import (
    QUIET,
    Array,
    PullBack,
    differentiable,
    expit,
    in_parts,
)
from amortes.nets.kernel.optimum.representers import joint_draws

ENTROPY_OF_NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)
SMALLEST = 1e-30
# Queries at once.
AT_ONCE = 64


class LearnedGains:
    """The gains of one conditioned dataset; everything that all queries share."""

    @torch.no_grad()
    def __init__(self, conditioned: Conditioned, network: GainNetwork) -> None:
        draws = joint_draws(conditioned, network.config.representers)
        self.features = GainFeatures(conditioned, draws)
        pairs = torch.from_numpy(self.features.pairs()).to(network.pair_mean)
        joint = network.joint_weights(pairs, conditioned.weights.to(pairs)).double()
        self.given = (joint / joint.sum(-1, keepdim=True)).numpy()  # T, b x g x k x k
        self.centre, self.spread = (
            t.double().numpy() for t in (network.query_mean, network.query_sd)
        )
        layers = [layer for layer in network.queries if isinstance(layer, nn.Linear)]
        self.layers = [
            (layer.weight.double().numpy(), layer.bias.double().numpy()) for layer in layers
        ]
        self.scale = network.scale.double().numpy()

    def mean(self, name: str, Xq: Tensor) -> Tensor:
        """The gain of that name in nats at Xq, `b x q x d`: `b x q`."""
        gradient = torch.is_grad_enabled() and Xq.requires_grad
        (gain,) = differentiable(lambda X: self.forward(name, X, gradient=gradient), Xq)
        return gain

    @QUIET
    def mean_with_gradient(self, name: str, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """The same and its gradient by Xq, `b x q x d`, without a graph."""
        (gain,), pull_back = self.forward(name, Xq.numpy(), gradient=True)
        return torch.from_numpy(gain), torch.from_numpy(pull_back(np.ones_like(gain)))

    def forward(self, name: str, X: Array, *, gradient: bool) -> tuple[tuple[Array, ...], PullBack]:
        """`mean`, and how derivatives by it become those by X, only with `gradient`."""
        some = partial(self._some, name, gradient=gradient)
        return in_parts(some, X, AT_ONCE, gradient=gradient)

    def _some(self, name: str, X: Array, *, gradient: bool) -> tuple[tuple[Array], PullBack]:
        """`forward` at queries whose temporaries fit the cache."""
        which, known = GAINS.index(name), self.features
        (features, mean, variance), pull_back_features = known.forward(X)
        (log_odds, shift), pull_back_network = self._read(features, which)
        left, sd = expit(features[..., 0] + log_odds), np.sqrt(variance)
        shift = self.scale[which] * features[..., 1] + shift
        before, after = variance + known.noise, left * variance + known.noise
        w, T = known.weights, self.given[:, which]
        H, by_mean, by_before = overlap_entropy(w, mean, before, gradient=gradient)
        H_told, by_told, by_after = overlap_entropy(
            w, mean + shift * sd, after, gradient=gradient, given=T
        )

        def pull_back(by_gain: Array) -> Array:
            by = by_gain[:, None]
            by_shift = -by * by_told * sd
            by_odds = -by * by_after * variance * left * (1.0 - left)
            by_features = pull_back_network(by_odds, by_shift)
            by_features[..., 0] += by_odds
            by_features[..., 1] += self.scale[which] * by_shift
            by_variance = by * (by_before - left * by_after - 0.5 * by_told * shift / sd)
            return pull_back_features(by_features, by * (by_mean - by_told), by_variance)

        return (H - H_told,), pull_back

    def _read(self, features: Array, which: int) -> tuple[tuple[Array, Array], PullBack]:
        """The two outputs of the network for a gain at features `b x k x q x F`: `b x k x q`."""
        (W1, b1), (W2, b2), (W3, b3) = self.layers
        rows = [which, len(GAINS) + which]
        W3, b3 = W3[rows], b3[rows]
        standard = (features - self.centre) / self.spread
        first = np.clip(standard, -FURTHEST, FURTHEST) @ W1.T + b1
        gate1 = expit(first)
        second = (first * gate1) @ W2.T + b2
        gate2 = expit(second)
        outputs = (second * gate2) @ W3.T + b3

        def pull_back(by_odds: Array, by_shift: Array) -> Array:
            by_second = np.stack([by_odds, by_shift], axis=-1) @ W3
            by_second *= gate2 * (1.0 + second * (1.0 - gate2))
            by_first = by_second @ W2
            by_first *= gate1 * (1.0 + first * (1.0 - gate1))
            by_features: Array = (by_first @ W1) * (np.abs(standard) < FURTHEST) / self.spread
            return by_features

        return (outputs[..., 0], outputs[..., 1]), pull_back


def overlap_entropy(
    weights: Array,
    means: Array,
    variances: Array,
    *,
    gradient: bool,
    given: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Entropies `b x ...` in nats of mixtures `b x k x ...`; weights may broadcast.

    With their derivatives by means and variances, `b x k x ...`; zeros unless there is `gradient`.
    `given`, `b x k x k`, are the weights T of the formula; without them T_ij = w_j.
    """
    w, m, v = weights, means, variances
    i, j, of_i, of_j = _pairs(m.shape[1])
    own, w_i, w_j = w, w[:, i], w[:, j]
    if given is not None:
        own = given.diagonal(axis1=1, axis2=2)[..., None]
        w_i, w_j = given[:, j, i][..., None], given[:, i, j][..., None]
    root = np.sqrt(np.sqrt(v))
    per_total = 1.0 / (v[:, i] + v[:, j])  # b x pairs x ...
    away = m[:, i] - m[:, j]
    square = np.square(away)
    square *= per_total
    overlap = np.sqrt(2.0 * per_total)
    overlap *= root[:, i]
    overlap *= root[:, j]
    overlap *= np.exp(-0.25 * square)
    density = _summed(of_i, overlap * w_j) + _summed(of_j, overlap * w_i)
    density += own
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
