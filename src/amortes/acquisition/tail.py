"""Results with their bad tail drawn in, where that explains them much better.

Objectives are often skewed: a learning rate that is too large gives a loss of thousands, and next
to it all that is good looks the same. An optimiser has to know that a place is bad, hardly how bad.
With u the results, bigger being better, m their median and s the spread of the better half about
it,

    u' = u                                for u >= t = m - s,
         t - s log(1 + (t - u) / s)       below,

which keeps the order, and at t the slope. From t upwards results, and predictions, are what they
were. Where the optimum is does not change, nor the information about it, but which functions are
likely: those whose u' is a Gaussian process (Snelson et al., NeurIPS 2003). Whether that is the
better model is for the data to say, by their density under it,

    log p(u) = log p(u') + sum log du'/du.

Only if that is decisive is u' taken (docs/log.md, 2026-11-17, "The bad tail"): a smooth function
with a steep side, such as Branin, is found sooner as it is.
"""

import math
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted
from amortes.acquisition.units import ROUNDING
from amortes.nets.base import Network

MARGIN = 10.0
"""Nats by which the model of u' must be better. With 5, Branin suffers; 0 helps others no more."""
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
    return other if better > MARGIN else plain


def draw_in(y: Tensor, *, maximise: bool) -> tuple[Tensor, Tensor]:
    """The values u' (with the sign of y) of y, `n` with n >= 1, and log du'/du: both `n`."""
    sign = 1.0 if maximise else -1.0
    u = sign * y
    middle = u.median()
    spread = (u[u >= middle] - middle).square().mean().sqrt()
    if float(spread) <= ROUNDING * float(u.abs().max()):
        return y, torch.zeros_like(y)  # the better half are all the same: nothing to tell apart
    edge = middle - spread
    log_slope = -((edge - u) / spread).clamp_min(0.0).log1p()
    # Others stay as they are, to the last digit.
    return torch.where(log_slope < 0.0, sign * (edge + spread * log_slope), y), log_slope


def _gain_if_independent(y: Tensor, drawn: Tensor, log_slope: Tensor) -> float:
    """By how many nats `drawn` are likelier than y, were both independent normal numbers."""
    if not bool(log_slope.any()):
        return 0.0
    return len(y) * math.log(float(y.std() / drawn.std())) + float(log_slope.sum())
