"""The axis of the values: linear or logarithmic, without the results that would flatten the rest.

The axis is logarithmic if results are positive and span at least `DECADES`. Results are shown
unless they are worse than the best three quarters by more than `REACH` times what these span (on a
logarithmic axis, twice, but at least `FAR` decades). Others, such as penalties of 1e30, are drawn
as triangles at the edge, and the legend says how many they are.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, NullFormatter

from amortes.optimiser.text import number

REACH = 20.0
DECADES = 2.0
FAR = 3.0
MARGIN = 0.06
FLAT, ROOM = 1e-13, 0.3
"""Values that differ by less than this share of their size are in the middle of an axis that goes
up and down by this share."""


@dataclass(frozen=True)
class ValueScale:
    """From where to where values are shown; results outside are `beyond`."""

    low: float
    high: float
    log: bool
    maximise: bool
    beyond: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float], *, maximise: bool) -> "ValueScale":
        """The scale of results; there need not be any."""
        kept = shown = np.asarray(values, dtype=np.float64)
        if len(shown) == 0:
            return cls(0.0, 1.0, False, maximise)
        kept = shown[_within(shown, maximise=maximise)]
        beyond = tuple(float(value) for value in values if value not in kept)
        return cls(*_ends(kept), spans_decades(kept), maximise, beyond)

    def including(self, *others: Sequence[float]) -> "ValueScale":
        """The scale with room for predictions, but not for any that are much too far away."""
        found = np.concatenate([np.asarray(other, dtype=np.float64) for other in others])
        found = found[np.isfinite(found)]
        if self.log:
            least, most = self.low / 10.0, self.high * 10.0
        else:
            room = 1.5 * (self.high - self.low)
            least, most = self.low - room, self.high + room
        found = found[(found >= least) & (found <= most)]
        if len(found) == 0:
            return self
        low, high = min(self.low, float(found.min())), max(self.high, float(found.max()))
        return dataclasses.replace(self, low=low, high=high)

    def within(self, values: np.ndarray) -> "tuple[np.ndarray, ValueScale]":
        """Values cut off at the ends of the axis, and the scale of just these."""
        cut = np.clip(values, *self.limits)
        low, high = _ends(cut)
        return cut, dataclasses.replace(self, low=low, high=high, beyond=())

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis: a margin around the values."""
        if self.log:
            share = (self.high / self.low) ** MARGIN
            return self.low / share, self.high * share
        room = MARGIN * (self.high - self.low)
        return self.low - room, self.high + room

    def shown(self, values: Sequence[float]) -> np.ndarray:
        """Which values are on the axis: `n`, bool."""
        array = np.asarray(values, dtype=np.float64)
        return (array >= self.low) & (array <= self.high)

    @property
    def note(self) -> str:
        """What the legend says of results beyond the axis."""
        worst = min(self.beyond) if self.maximise else max(self.beyond)
        many = f"{len(self.beyond)} results" if len(self.beyond) > 1 else "1 result"
        where = "below the axis, down to" if self.maximise else "above the axis, up to"
        return f"{many} {where} {number(worst, 3)}"

    def norm(self) -> Normalize:
        """Colours of values."""
        kind = LogNorm if self.log else Normalize
        return kind(self.low, self.high, clip=True)

    def apply(self, ax: Axes) -> None:
        """Make this the vertical axis."""
        if self.log:
            ax.set_yscale("log", nonpositive="clip")
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.yaxis.set_major_locator(LogLocator(numticks=8))
        ax.set_ylim(*self.limits)

    def mark_beyond(self, ax: Axes, x: Sequence[float], **look: Any) -> Any:
        """Triangles at the edge for results beyond the axis, at these places; what was drawn."""
        edge = 0.015 if self.maximise else 0.985
        return ax.scatter(
            x,
            [edge] * len(x),
            marker="v" if self.maximise else "^",
            transform=ax.get_xaxis_transform(),
            clip_on=False,
            zorder=4,
            **look,
        )


def _ends(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest value; if they are the same, one below and one above it."""
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    if high - low > FLAT * size:
        return low, high
    room = ROOM * size or 1.0
    return low - room, high + room


def spans_decades(values: np.ndarray) -> bool:
    """Whether values are best seen on a logarithmic axis."""
    low, high = float(values.min()), float(values.max())
    return low > 0 and math.log10(high) - math.log10(low) >= DECADES


def _within(values: np.ndarray, *, maximise: bool) -> np.ndarray:
    """Which values, `n`, are not far worse than the rest: `n`, bool."""
    log = spans_decades(values)
    scaled = np.log10(values) if log else values
    worse = np.sort(-scaled if maximise else scaled)  # smaller is better
    usual = float(worse[(3 * (len(worse) - 1)) // 4])
    spread = usual - float(worse[0])
    if spread == 0.0:  # they are all the same: take the next that differs
        above = worse[worse > usual]
        spread = float(above[0]) - usual if len(above) else 0.0
    limit = usual + (max(2.0 * spread, FAR) if log else REACH * spread)
    kept: np.ndarray = (-scaled if maximise else scaled) <= limit
    return kept
