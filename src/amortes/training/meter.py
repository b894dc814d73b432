"""Running averages of a training loop: metrics per interval, smoothed loss and speed."""

import statistics
from collections import defaultdict
from collections.abc import Mapping

SMOOTHING = 0.98


class Meter:
    """Collects the metrics of steps; empty again after each `flush`."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = defaultdict(list)
        self._loss = self._seconds = self._weight = 0.0

    def add(self, metrics: Mapping[str, float], seconds: float) -> None:
        """Take in the metrics and the duration of one step."""
        for name, value in metrics.items():
            self._taken[name].append(value)
        fresh = 1.0 - SMOOTHING
        self._loss = SMOOTHING * self._loss + fresh * metrics["loss"]
        self._seconds = SMOOTHING * self._seconds + fresh * seconds
        self._weight = SMOOTHING * self._weight + fresh

    @property
    def loss(self) -> float:
        """Smoothed loss."""
        return self._loss / self._weight

    @property
    def seconds(self) -> float:
        """Smoothed duration of a step."""
        return self._seconds / self._weight

    def flush(self) -> dict[str, float]:
        """Means since the last flush, each over the steps that had this metric."""
        means = {name: statistics.fmean(values) for name, values in self._taken.items()}
        self._taken.clear()
        return means
