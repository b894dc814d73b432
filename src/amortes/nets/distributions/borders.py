"""Where the bars of a Riemann distribution begin and end.

With bars of equal mass only, the bars are widest in the upper tail, which is where optimisation
happens. `fit_borders` blends equal mass with equal width; `asinh_borders` suits information
gains: fine around zero, coarse far away, the same on both sides.
"""

import math

import torch
from torch import Tensor

from amortes.errors import ConfigError


def check_borders(borders: Tensor) -> None:
    """Raise ConfigError unless `borders` (`m+1`) are finite, strictly increasing, and m >= 3."""
    if borders.dim() != 1 or borders.shape[0] < 4:
        raise ConfigError(
            f"borders must be a vector of at least 4 numbers (3 bars: two tails and one between), "
            f"got shape {tuple(borders.shape)}."
        )
    if not bool(torch.isfinite(borders).all()):
        raise ConfigError("borders must be finite, got NaN or infinity.")
    widths = borders.diff()
    if not bool((widths > 0).all()):
        i = int(widths.argmin())
        raise ConfigError(
            f"borders must be strictly increasing in {borders.dtype}, but borders[{i}] = "
            f"{borders[i].item():g} is followed by {borders[i + 1].item():g}; use fewer bars, "
            f"more even ones, or float64."
        )


def fit_borders(samples: Tensor, num_bars: int, blend: float = 0.5) -> Tensor:
    """`num_bars + 1` borders for data like `samples` (any shape), in their dtype.

    Border i is (1 - blend) times the sample quantile at (i + 1/2) / (num_bars + 1) plus blend
    times the equal-width grid between the first and the last of those quantiles.
    """
    if not 0.0 <= blend <= 1.0:
        raise ConfigError(f"blend must be between 0 (equal mass) and 1 (equal width), got {blend}.")
    if samples.numel() < 2 or not bool(torch.isfinite(samples).all()):
        raise ConfigError(
            f"samples must be at least two finite numbers, got shape {tuple(samples.shape)}"
            f"{'' if samples.numel() < 2 else ' with NaN or infinity'}."
        )
    ordered = samples.detach().double().flatten().sort().values
    level = (torch.arange(num_bars + 1, dtype=torch.float64) + 0.5) / (num_bars + 1)
    position = level * (len(ordered) - 1)
    below = position.long()
    mass = torch.lerp(
        ordered[below], ordered[(below + 1).clamp_max(len(ordered) - 1)], position % 1
    )
    even = torch.linspace(0.0, 1.0, num_bars + 1, dtype=torch.float64)
    width = torch.lerp(mass[0], mass[-1], even)
    borders = torch.lerp(mass, width, blend).to(samples.dtype)
    check_borders(borders)
    return borders


def asinh_borders(num_bars: int, limit: float, linear: float) -> Tensor:
    """`num_bars + 1` float64 borders from -limit to limit, even in asinh(x / linear).

    Bars are about equally wide within ±linear and grow geometrically beyond.
    """
    if not (linear > 0.0 and 0.0 < limit < math.inf):
        raise ConfigError(f"limit and linear must be positive, got {limit} and {linear}.")
    end = math.asinh(limit / linear)
    borders = linear * torch.linspace(-end, end, num_bars + 1, dtype=torch.float64).sinh()
    borders = 0.5 * (borders - borders.flip(0))
    check_borders(borders)
    return borders
