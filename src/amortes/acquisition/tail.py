"""Results with their bad tail drawn in, where that explains them much better.

Objectives are often skewed: a learning rate that is too large gives a loss of thousands, or a user
puts a million for a failure, and next to that all that is good looks the same. An optimiser has to
know that a place is bad, hardly how bad. With u the results, bigger being better, m their median, s
the spread of the better half about it, and b = (m - s - u) / s,

    u' = u                              where b <= 0,
         m - s - s b / (1 + b / 3)      below,

which keeps the order, and at the edge the slope; nothing is worse than m - 4 s. Above the edge
results, and predictions, are what they were. Where the optimum is does not change, nor the
information about it, but which functions are likely: those whose u' is a Gaussian process (Snelson
et al., NeurIPS 2003). Whether that is the better model is for the data to say, by their density,

    log p(u) = log p(u') + sum log du'/du.

Only if that is decisive is u' taken (docs/log.md, 2026-11-17, "The bad tail"): a smooth function
with a steep side, such as Branin, is found sooner as it is. And never if the model then takes u'
for noise: close to convergence the better half hardly differ, and all others are far below.
"""

import math
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted
from amortes.acquisition.units import ROUNDING
from amortes.nets.base import Network

DEPTH = 3.0
"""How far below the edge the worst results end, in spreads."""
MARGIN = 10.0
"""Nats by which the model of u' must be better."""
MOST_NOISE = 0.5
"""Noise that it may see in u', in standard deviations of u', unless there is more in u."""
LEAST = 5.0
"""Nats to be better by if points were independent, below which it is not worth a second fit."""


def fit_robustly(network: Network[Any], X: Tensor, y: Tensor, *, maximise: bool) -> Fitted:
    """The network fitted to y, `n`, or to y with its bad tail drawn in if that is far likelier.

    Networks that do not know the density of their data take y as it is.
    """
    plain = Fitted(network, X, y, maximise=maximise)
    drawn, log_slope = draw_in(y, maximise=maximise)
    if plain.log_evidence is None or _gain_if_independent(y, drawn, log_slope) < LEAST:
        return plain
    other = Fitted(network, X, drawn, maximise=maximise)
    assert other.log_evidence is not None
    better = other.log_evidence + float(log_slope.sum()) - plain.log_evidence
    noise = [fitted.noise_share or 0.0 for fitted in (plain, other)]
    return other if better > MARGIN and noise[1] <= max(MOST_NOISE, noise[0]) else plain


def draw_in(y: Tensor, *, maximise: bool) -> tuple[Tensor, Tensor]:
    """The values u' (with the sign of y) of y, `n` with n >= 1, and log du'/du: both `n`."""
    sign = 1.0 if maximise else -1.0
    u = sign * y
    middle = u.median()
    better = u[u >= middle]
    spread = (better - middle).square().mean().sqrt()
    if float(spread) <= ROUNDING * float(better.abs().max()):
        return y, torch.zeros_like(y)  # they are all the same: nothing to tell apart
    edge = middle - spread
    beyond = ((edge - u) / spread).clamp_min(0.0)
    drawn = sign * (edge - spread * beyond / (1.0 + beyond / DEPTH))
    # Others stay as they are, to the last digit.
    return torch.where(beyond > 0.0, drawn, y), -2.0 * (beyond / DEPTH).log1p()


def _gain_if_independent(y: Tensor, drawn: Tensor, log_slope: Tensor) -> float:
    """By how many nats `drawn` are likelier than y, were both independent normal numbers."""
    if not bool(log_slope.any()):
        return 0.0
    return len(y) * math.log(float(y.std() / drawn.std())) + float(log_slope.sum())
