"""What figures are drawn of: the trials of a run, the model and the recommended config."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from amortes.acquisition import Fitted
from amortes.optimiser.choices import Categorical
from amortes.optimiser.plots.axis import MOST_CHOICES, ParameterAxis
from amortes.optimiser.plots.picture import Style
from amortes.optimiser.plots.values import ValueScale
from amortes.optimiser.prediction import Recommendation
from amortes.optimiser.space import Config, Space
from amortes.optimiser.trials import Trial

LEVEL = 0.9
"""Probability of the intervals that are drawn."""
MARKERS = {"failed": "x", "infeasible": "+"}
"""Marks of trials that gave no value: at the good edge of the values, where none are."""
BLOCK = 1024
"""Points predicted at a time."""


@dataclass(frozen=True)
class View:
    """A run at one time; without results there is no model."""

    trials: Sequence[Trial]
    space: Space
    maximise: bool
    style: Style
    past: int = 0
    fitted: Fitted | None = None
    recommendation: Recommendation | None = None

    @cached_property
    def done(self) -> list[Trial]:
        """The trials with a value."""
        return [trial for trial in self.trials if trial.value is not None]

    @cached_property
    def without_value(self) -> dict[str, list[Trial]]:
        """Trials that failed, and those infeasible: they violate what only evaluations tell."""
        kinds: dict[str, list[Trial]] = {}
        for trial in self.trials:
            if trial.status == "failed":
                name = "infeasible" if (trial.violation or 0.0) > 0.0 else "failed"
                kinds.setdefault(name, []).append(trial)
        return dict(sorted(kinds.items()))

    @cached_property
    def values(self) -> list[float]:
        """The values of the trials that have one."""
        return [trial.value for trial in self.done if trial.value is not None]

    @cached_property
    def scale(self) -> ValueScale:
        """The axis of the values."""
        return ValueScale.of(self.values, maximise=self.maximise)

    @property
    def centre(self) -> Config:
        """The recommended config, through which slices are cut."""
        assert self.recommendation is not None
        return self.recommendation.config

    @property
    def names(self) -> list[str]:
        """The parameters that matter in the recommended config."""
        return [name for name in self.space.free if name in self.centre]

    def axis(self, name: str) -> ParameterAxis:
        """The axis of a parameter; of many choices without order, those expected to be best."""
        parameter = self.space.free[name]
        if isinstance(parameter, Categorical) and len(parameter.choices) > MOST_CHOICES:
            _, middle, _ = self.band([self.varied({name: c}) for c in parameter.choices])
            order = np.argsort(-middle if self.maximise else middle, kind="stable")
            chosen = {int(i) for i in order[:MOST_CHOICES]}
            return ParameterAxis.of(
                name, parameter, [c for i, c in enumerate(parameter.choices) if i in chosen]
            )
        return ParameterAxis.of(name, parameter)

    def varied(self, values: Mapping[str, Any]) -> Config:
        """The recommended config with other values of some parameters."""
        return self.space.adapted({**self.centre, **values})

    def allowed(self, configs: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Which configs satisfy the constraints of the space: `n`, bool."""
        found: np.ndarray = self.space.feasible(self.space.encode_all(configs)).numpy()
        return found

    def band(self, configs: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, ...]:
        """Lower end, median and upper end of the interval for the function, without noise: `n`.

        Not the mean, which a long tail may take out of the interval.
        """
        assert self.fitted is not None
        shares = torch.tensor([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], dtype=torch.float64)
        parts = []
        with torch.no_grad():
            points = self.space.encode_all(configs)
            for X in (points[i : i + BLOCK] for i in range(0, len(points), BLOCK)):
                parts.append(self.fitted.latent(X).icdf(shares[:, None]))
        low, middle, high = torch.cat(parts, dim=1).numpy()
        return low, middle, high

    def nearness(self, name: str) -> np.ndarray:
        """How close the results are to the slice along a parameter, between 0 and 1: `n`.

        exp(-r^2 / 2) with r the distance, along all other parameters, in lengthscales.
        """
        assert self.fitted is not None
        X = self.space.encode_all([trial.config for trial in self.done])
        steps = X - self.space.encode(self.centre)
        steps[:, self.space.places[name]] = 0.0
        scale = self.fitted.lengthscale
        if scale is not None:
            steps = steps / scale
        near: np.ndarray = (-0.5 * steps.square().sum(1)).exp().numpy()
        return near


def mark_failures(ax: Axes, view: View, place: Callable[[Trial], float]) -> None:
    """Mark failed and infeasible trials along the horizontal axis."""
    for name, trials in view.without_value.items():
        ax.scatter(
            [place(trial) for trial in trials],
            [0.98 if view.maximise else 0.02] * len(trials),
            marker=MARKERS[name],
            s=26,
            color=getattr(view.style, name),
            lw=1.3,
            transform=ax.get_xaxis_transform(),
            clip_on=False,
            zorder=5,
            label=name,
        )
