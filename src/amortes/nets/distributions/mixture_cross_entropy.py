"""Cross-entropy of a Gaussian mixture under a Gaussian target, by an equispaced rule.

    -∫ N(y; m, v) log q(y) dy ≈ -Σ_i ω_i log q(m + sqrt(v) t_i),    q(y) = Σ_j w_j N(y; μ_j, σ_j²)

with t_i evenly spaced on about ±4.8, ω_i ∝ exp(-t_i² / 2), and the t_i scaled to have variance
one. So the rule is exact for one component, where log q is quadratic. For more it is better than
as many Gauss-Hermite nodes, which are further apart where the target has its mass. Measured, root
mean square error in nats over 300 random mixtures of 4 components inside the target, by the range
of their sds in units of the target's:

    sds                      1 to 10   0.5 to 2   0.3 to 1   0.1 to 1   0.03 to 1
    24 evenly spaced           7e-7       6e-6       2e-3       4e-2      0.3
    32 evenly spaced           1e-6       3e-6       6e-4       2e-2      0.1
    24 Gauss-Hermite           5e-8       3e-4       1e-2       1e-1      0.5

So components narrower than a fifth of the target, half the distance of two nodes, blur.

Written out with its gradient, in chunks that fit the cache, because it is the training loss: for
4096 mixtures of 32 components in float32 4 µs each with gradients, against 16 to 22 µs by autograd.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from amortes.nets.distributions.normal import LOG_SQRT_2PI

NODES = 24
CHUNK = 1 << 17


def mixture_cross_entropy(
    log_weights: Tensor,
    means: Tensor,
    sds: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    nodes: int = NODES,
) -> Tensor:
    """Cross-entropies `...` of mixtures `... x k` (weights normalised) under N(mean, variance).

    `mean` and `variance` have shape `...`. Once differentiable in all five tensors.
    """
    k = log_weights.shape[-1]
    t, weights = (part.to(mean) for part in _rule(nodes))
    y = mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * t  # ... x n
    inputs = (*(p.reshape(-1, k) for p in (log_weights, means, sds)), y.reshape(-1, nodes))
    needs_grad = torch.is_grad_enabled() and any(p.requires_grad for p in inputs)
    expected: Tensor = _ExpectedLogDensity.apply(  # type: ignore[no-untyped-call]
        *inputs, weights, needs_grad
    )
    return -expected.reshape(mean.shape)


def _rule(nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights for expectations under N(0, 1), in float64."""
    t = torch.linspace(-4.8, 4.8, nodes, dtype=torch.float64)
    weights = torch.softmax(-0.5 * t.square(), 0)
    return t / (weights @ t.square()).sqrt(), weights


class _ExpectedLogDensity(torch.autograd.Function):
    """Σ_i ω_i log q(y_i) for parameters `b x k`, nodes `b x n` and weights `n`: `b`."""

    @staticmethod
    def forward(
        ctx: Any,
        log_weights: Tensor,
        means: Tensor,
        sds: Tensor,
        y: Tensor,
        weights: Tensor,
        needs_grad: bool,
    ) -> Tensor:
        b, k = log_weights.shape
        value = torch.empty_like(y[:, 0])
        grads = [torch.empty_like(p) for p in (sds, sds, sds, y)] if needs_grad else []
        inverse = 1.0 / sds
        offset = log_weights - sds.log() - LOG_SQRT_2PI
        size = max(1, CHUNK // (k * y.shape[-1]))
        for start in range(0, b, size):
            rows = slice(start, start + size)
            scale = inverse[rows, None]
            z = (y[rows, :, None] - means[rows, None]).mul_(scale)  # b x n x k
            e = torch.mul(z, z).mul_(-0.5).add_(offset[rows, None])
            top = e.amax(-1, keepdim=True)
            # Below the floor exp would underflow, which is far slower than to compute a number.
            e.sub_(top).clamp_min_(-80.0).exp_()
            total = e.sum(-1)
            value[rows] = (total.log() + top[..., 0]) @ weights
            if not needs_grad:
                continue
            rule = (weights / total).unsqueeze(1)  # times e: weight x responsibility
            grads[0][rows] = torch.bmm(rule, e)[:, 0]
            ez = e.mul_(z)
            grads[1][rows] = torch.bmm(rule, ez)[:, 0] * inverse[rows]
            grads[3][rows] = -rule[:, 0] * torch.bmm(ez, scale.mT)[..., 0]
            grads[2][rows] = torch.bmm(rule, ez.mul_(z))[:, 0]
        if needs_grad:
            grads[2] = (grads[2] - grads[0]) * inverse
            ctx.save_for_backward(*grads)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grad[:, None] * g for g in ctx.saved_tensors), None, None)
