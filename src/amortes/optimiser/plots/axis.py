"""The axis of a parameter: where its values are drawn, between 0 and 1, and its ticks.

Places are those of the model, so that logarithmic parameters have logarithmic axes, and ranges of
any size can be drawn.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from amortes.optimiser.choices import Choices, Parameter, identity
from amortes.optimiser.numeric import Int, Numeric
from amortes.optimiser.plots.picture import label, labels

GRID = 80
"""Values of a numeric parameter that are predicted."""
MOST_CHOICES = 16
EVERY = (1, 2, 3, 5, 10, 20, 50, 100, 200)
"""Decades between two ticks."""
FEW = 8
"""Values that all have a tick."""
MINUS = "\N{MINUS SIGN}"
LETTERS = 10.5
"""Letters of tick labels in an inch."""


@dataclass(frozen=True)
class ParameterAxis:
    """One parameter as an axis from 0 to 1; of many choices only those in `shown` are drawn."""

    name: str
    parameter: Parameter
    shown: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, parameter: Parameter, shown: Sequence[Any] = ()) -> "ParameterAxis":
        """The axis; choices are all of them, or some spread over the list, if none are given."""
        if isinstance(parameter, Choices) and not shown:
            every = math.ceil(len(parameter.choices) / MOST_CHOICES)
            shown = parameter.choices[::every]
        return cls(name, parameter, tuple(shown))

    @property
    def continuous(self) -> bool:
        """Whether predictions are drawn as a line."""
        if isinstance(self.parameter, Choices):
            return False
        return self.parameter.cardinality is None or self.parameter.cardinality > GRID

    def values(self) -> list[Any]:
        """Values to draw, in order: all, or some spread over the range."""
        if self.shown:
            return list(self.shown)
        if not self.continuous:
            return self.parameter.values()
        steps = torch.linspace(0, 1, GRID, dtype=torch.float64).tolist()
        return list(dict.fromkeys(self.parameter.decode([u]) for u in steps))

    def place(self, value: Any) -> float:
        """Where a value is drawn; NaN if it is a choice that is not shown."""
        if isinstance(self.parameter, Choices):
            known = [identity(choice) for choice in self.shown]
            wanted = identity(value)
            return (known.index(wanted) + 0.5) / len(known) if wanted in known else math.nan
        return min(max(self.parameter.encode(value)[0], 0.0), 1.0)

    def place_in(self, config: Mapping[str, Any]) -> float:
        """Where a config is drawn; NaN if it has no value, or none that is shown."""
        return self.place(config[self.name]) if self.name in config else math.nan

    @property
    def title(self) -> str:
        """The name, and what is left out."""
        if isinstance(self.parameter, Choices) and len(self.shown) < len(self.parameter.choices):
            return (
                f"{label(self.name)} ({len(self.shown)} of {len(self.parameter.choices)} choices)"
            )
        return label(self.name)

    def ticks(self) -> tuple[list[float], list[str], list[float]]:
        """Places and labels of ticks, and places of minor ones."""
        if isinstance(self.parameter, Numeric):
            values, minor = numeric_ticks(self.parameter)
            texts = tick_labels(values, log=self.parameter.log)
        else:
            values, minor = list(self.shown), []
            texts = labels(values, 16)
        return [self.place(v) for v in values], texts, [self.place(v) for v in minor]

    def apply(self, ax: Axes, *, width: float, vertical: bool = False) -> None:
        """Make this the horizontal (or vertical) axis of axes that are so many inches wide."""
        places, labels, minor = self.ticks()
        axis = ax.yaxis if vertical else ax.xaxis
        (ax.set_ylim if vertical else ax.set_xlim)(-0.02, 1.02)
        axis.set_ticks(places, labels)
        axis.set_ticks(minor, minor=True)
        (ax.set_ylabel if vertical else ax.set_xlabel)(self.title)
        angle = self._angle(width)
        if angle and not vertical:
            for text in ax.get_xticklabels():
                text.set(rotation=angle, ha="center" if angle == 90 else "right")
                text.set_rotation_mode("default" if angle == 90 else "anchor")

    def label_height(self, width: float) -> float:
        """Inches that the labels of a horizontal axis need beyond those of one line."""
        longest = max(map(len, map(_drawn, self.ticks()[1])), default=0)
        return math.sin(math.radians(self._angle(width))) * longest / LETTERS

    def _angle(self, width: float) -> int:
        """Degrees by which labels are turned to have room on an axis this wide, in inches."""
        labels = self.ticks()[1]
        room = width * LETTERS / max(len(labels), 1)
        if max(map(len, map(_drawn, labels)), default=0) <= room:
            return 0
        return 90 if room < 4 else 40


def numeric_ticks(parameter: Numeric) -> tuple[list[Any], list[Any]]:
    """Values at ticks and at minor ticks, within the range."""
    low, high, whole = parameter.low, parameter.high, isinstance(parameter, Int)
    if parameter.cardinality is not None and parameter.cardinality <= FEW:
        return parameter.values(), []
    found: list[Any] = []
    minor: list[Any] = []
    if parameter.log:
        found, minor = _log_ticks(float(low), float(high))
    if len(found) < 2:
        # Matplotlib's own arithmetic overflows.
        scale = 1.0 if whole else 10.0 ** math.floor(math.log10(max(abs(low), abs(high))))
        locator = MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=whole)
        found = [scale * t for t in locator.tick_values(low / scale, high / scale)]
        minor = []
    if whole:
        found = sorted({round(value) for value in found})
        minor = sorted({round(value) for value in minor} - set(found))
    ticks, minors = (
        [type(low)(value) for value in some if low <= value <= high] for some in (found, minor)
    )
    return (ticks, minors) if len(ticks) > 1 else ([low, high], minors)


def _log_ticks(low: float, high: float) -> tuple[list[float], list[float]]:
    """Powers of ten, few enough to be read; with only one or two of them, also 2 and 5 times."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = list(range(first, last + 1))
    every = next(step for step in EVERY if len(decades) <= 5 * step)
    powers = range(first - 1, last + 1)
    if len(decades) <= 2:
        steps = [(f, p) for p in powers for f in (1, 2, 5)]
        return [t for t in (f * 10.0**p for f, p in steps) if low <= t <= high], []
    minor = [f * 10.0**p for p in powers for f in range(2, 10)] if len(decades) <= 8 else []
    return [10.0**p for p in decades if p % every == 0], minor


def tick_labels(values: Sequence[Any], *, log: bool) -> list[str]:
    """Numbers at ticks, with as many digits as tell them apart; long powers of ten as such."""
    exponents = [math.log10(value) for value in values] if log else []
    if max(map(abs, exponents), default=0) > 3.5 and all(
        abs(e - round(e)) < 1e-9 for e in exponents
    ):
        return [f"$10^{{{round(e)}}}$" for e in exponents]
    texts: list[str] = []
    for digits in (5 if max(map(abs, values)) < 1e5 else 4, 6, 9, 12, 17):
        texts = [re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.{digits}g}") for value in values]
        if len(set(texts)) == len(texts):
            break
    return [text.replace("-", MINUS) for text in texts]


def cell_edges(places: np.ndarray) -> np.ndarray:
    """Ends of the cells around places between 0 and 1."""
    return np.concatenate([[0.0], (places[1:] + places[:-1]) / 2, [1.0]])


def _drawn(text: str) -> str:
    """What is seen of a label."""
    return "10-5" if text.startswith("$10") else text.replace(MINUS, "--")  # as wide
