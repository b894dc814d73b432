"""Entropy of Gaussian mixtures from the overlaps of their components: rough, but cheap and smooth.

    H ~ sum_i w_i ( H_i - log sum_j w_j o_ij ),    o_ij = ∫ sqrt(p_i p_j),

exact if components are equal or far apart, and never more than the entropy (Kolchinsky & Tracey,
Estimating mixture entropy with pairwise distances, Entropy 19(7), 2017). There are no nodes, so
narrow components inside wide ones are no trouble. With t = v_i + v_j and q = v^(1/4),

    o_ij = q_i q_j sqrt(2 / t) exp(-(m_i - m_j)^2 / 4t).

It takes about a tenth of the time of `mixture_entropy`. In NumPy, as all on the way of a gain.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENTROPY_OF_NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)
SMALLEST = 1e-30


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
