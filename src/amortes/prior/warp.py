"""Monotone warps of the unit interval, with two parameters for each coordinate.

A coordinate's log-odds, softened so that they are finite at the edges, are stretched and shifted:

    L(x) = log (x + δ) / (1 + δ - x),    S(x) = sigmoid(e^c L(x) + s),
    w(x) = (S(x) - S(0)) / (S(1) - S(0)).

The shift s moves where a function of w(x) varies most towards one edge, as that of a rate that
should be on a log scale does; a shape c < 0 moves it to both edges, c > 0 to the middle. c = s = 0
is the identity. Everything is in closed form and bounded, slopes at the edges and the inverse too,
and the mirror image 1 - w(1 - x) is the warp with -s.

Input warping for Bayesian optimisation is due to Snoek et al., "Input warping for Bayesian
optimization of non-stationary functions", ICML 2014, who use the distribution function of the Beta.
docs/log.md, 2026-11-18, compares this family with Kumaraswamy's.

Parameters are `... x 2 x d`: c, then s.
"""

import math

import torch
from torch import Tensor

SOFTNESS = 0.01
"""δ: with it the slope at an edge is at most about e^|s| times 5 for c >= -0.7."""
LAST = math.log((1.0 + SOFTNESS) / SOFTNESS)
"""L(1) = -L(0)."""


def warp(X: Tensor, parameters: Tensor) -> Tensor:
    """w(X) for X, `... x n x d`: `... x n x d`."""
    stretch, shift, low, width = _parts(parameters)
    return (torch.sigmoid(stretch * _log_odds(X) + shift) - low) / width


def unwarp(U: Tensor, parameters: Tensor) -> Tensor:
    """The X in the unit cube with warp(X, parameters) = U."""
    stretch, shift, _, width = _parts(parameters)
    # In the upper half by the mirror image: float32 near S = 1 would miss the upper edge.
    upper = U > 0.5
    shift = torch.where(upper, -shift, shift)
    low = torch.sigmoid(shift - LAST * stretch)
    S = (low + torch.where(upper, 1.0 - U, U) * width).clamp(1e-15, 1.0 - 1e-15)
    share = torch.sigmoid((torch.logit(S) - shift) / stretch)
    X = ((1.0 + 2.0 * SOFTNESS) * share - SOFTNESS).clamp(0.0, 1.0)
    return torch.where(upper, 1.0 - X, X)


def mirrored(parameters: Tensor, mask: Tensor) -> Tensor:
    """Those of the mirror images 1 - w(1 - x) in the coordinates of `mask`, `... x d`."""
    shape, shift = parameters.unbind(-2)
    return torch.stack([shape, torch.where(mask, -shift, shift)], dim=-2)


def _log_odds(X: Tensor) -> Tensor:
    return ((X + SOFTNESS) / (1.0 + SOFTNESS - X)).log()


def _parts(parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """e^c, s, S(0) and S(1) - S(0), each `... x 1 x d`."""
    shape, shift = parameters.tensor_split(2, dim=-2)
    stretch = shape.exp()
    low = torch.sigmoid(shift - LAST * stretch)
    return stretch, shift, low, torch.sigmoid(shift + LAST * stretch) - low
