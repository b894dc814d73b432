"""Functions of the standard normal that stay accurate, with finite gradients, far in the tails.

With φ the density and Φ the distribution function, and x = -u > 0 large, everything cancels in the
textbook formulas. The continued fraction of Mills' ratio does not:

    Φ(-x) / φ(x) = 1 / (x + δ),   δ = 1 / (x + ε),   ε = 2 / (x + 3 / (x + 4 / (x + ...)))

from which, without a subtraction of nearly equal numbers,

    φ/Φ = x + δ,   h = φ + uΦ = φ δ / (x + δ),   Var[Z | Z < -x] = δ (ε - δ).

References: Abramowitz & Stegun, Handbook of Mathematical Functions, 1964, 26.2.14; Ament et al.,
Unexpected Improvements to Expected Improvement for Bayesian Optimization, NeurIPS 2023 (log h).
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.special import erfcx, log_ndtr

__all__ = [
    "LOG_SQRT_2PI",
    "cut_off",
    "log_h",
    "log_ndtr",
    "log_normal",
    "log_sum_exp",
    "ndtr",
    "truncated_moments",
]

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
DEPTH = 12
"""Levels of the fraction; with `_tail_start` its relative error stays below the rounding of λ."""
NOWHERE = 12.0
"""φ here is 2e-32: a normal cut off further out than this is not cut off."""


def log_normal(z: Tensor) -> Tensor:
    """The log density log φ(z)."""
    return -0.5 * z.square() - LOG_SQRT_2PI


def ndtr(z: Tensor) -> Tensor:
    """Φ(z), accurate relative to its size (`torch.special.ndtr` rounds to 0 near -6 in float32)."""
    return 0.5 * torch.erfc(-math.sqrt(0.5) * z)


def log_sum_exp(terms: Tensor) -> Tensor:
    """`torch.logsumexp` over the last dimension, ignoring terms e^80 below the largest.

    They do not matter, but exp is 20 to 200 times slower where its result underflows.
    """
    floor = terms.detach().amax(-1, keepdim=True) - 80.0
    return torch.logsumexp(torch.maximum(terms, floor), -1)


def log_h(u: Tensor) -> Tensor:
    """log(φ(u) + u Φ(u)), the log of the expected improvement of N(u, 1) over zero."""
    start = _tail_start(u)
    x = (-u).clamp_min(start)
    delta, _ = _fractions(x)
    tail = log_normal(u) + (delta / (x + delta)).log()
    body = u.clamp_min(-start)
    return torch.where(u < -start, tail, log_ndtr(body) + (_hazard(body) + body).log())


def truncated_moments(mean: Tensor, sd: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of N(mean, sd²) given that it is at most `upper` (which may be inf).

    The shapes broadcast. The variance is positive however far `upper` is below the mean.
    """
    beta = (torch.minimum(upper, mean + NOWHERE * sd) - mean) / sd
    hazard, distance, width = cut_off(beta)
    # Far below the mean, `upper` is the better origin: from the mean, digits would cancel.
    in_tail = beta < -_tail_start(beta)
    new_mean = torch.where(in_tail, upper - sd * distance, mean - sd * hazard)
    return new_mean, sd.square() * width


def cut_off(beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A standard normal given that it is at most β: hazard λ, mean distance λ + β, and variance."""
    result: tuple[Tensor, Tensor, Tensor] = _CutOff.apply(beta)  # type: ignore[no-untyped-call]
    return result


class _CutOff(torch.autograd.Function):
    """`cut_off` with its derivatives in closed form: a graph of the fractions would be large.

    With δ = λ + β and w = 1 - λδ: λ' = -λδ, δ' = w, w' = λ (δ² - w), which is λδ (2δ - ε) in terms
    of the fractions.
    """

    @staticmethod
    def forward(ctx: Any, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        start = _tail_start(beta)
        body = beta.clamp_min(-start)
        hazard = _hazard(body)
        distance = hazard + body
        width = 1.0 - hazard * distance
        slope = hazard * (distance.square() - width)
        tail = (beta < -start).nonzero(as_tuple=True)
        if tail[0].numel():
            x = -beta[tail]
            delta, epsilon = _fractions(x)
            hazard[tail], distance[tail] = x + delta, delta
            width[tail] = delta * (epsilon - delta)
            slope[tail] = (x + delta) * delta * (2.0 * delta - epsilon)
        ctx.save_for_backward(hazard, distance, width, slope)
        return hazard, distance, width

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        hazard, distance, width, slope = ctx.saved_tensors
        by_hazard, by_distance, by_width = grads
        gradient: Tensor = by_distance * width - by_hazard * hazard * distance + by_width * slope
        return gradient


def _tail_start(x: Tensor) -> float:
    """Where the continued fraction takes over from closed forms, which lose digits as x⁴."""
    return 4.0 if x.dtype == torch.float32 else 9.0


def _hazard(beta: Tensor) -> Tensor:
    """λ where β is not in the lower tail."""
    mills: Tensor = math.sqrt(0.5 * math.pi) * erfcx(-math.sqrt(0.5) * beta.clamp_max(NOWHERE))
    return 1.0 / mills


def _fractions(x: Tensor) -> tuple[Tensor, Tensor]:
    """δ and ε of the module docstring at x, which must be at least `_tail_start`."""
    rest = x
    for n in range(DEPTH, 2, -1):
        rest = x + n / rest
    epsilon = 2.0 / rest
    return 1.0 / (x + epsilon), epsilon
