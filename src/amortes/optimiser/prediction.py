"""What the model predicts for a config, in the user's units, and the config to use in the end.

    prediction = opt.predict({"lr": 1e-3, "layers": 3})
    prediction.mean, prediction.median, prediction.lower, prediction.upper
    prediction.samples(1000, seed=0)

It predicts the function itself or, with `observation_noise=True`, a new result, which includes the
noise. Intervals are between quantiles, because the distribution need not be symmetric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from amortes.acquisition import Fitted
from amortes.errors import DataError, require_int, shown
from amortes.nets.distributions import Predictive
from amortes.numbers import as_float
from amortes.optimiser.space import Config, Space
from amortes.optimiser.text import config_text, html_table, interval, number, percent
from amortes.random import generator


@dataclass(frozen=True, repr=False)
class Prediction:
    """What the model predicts for one config, in the units of your values."""

    config: Config
    mean: float
    median: float
    lower: float
    upper: float
    level: float
    """Probability that the value is between `lower` and `upper`."""
    observation_noise: bool
    """True if this predicts a new, noisy result; False if it predicts the function itself."""
    _distribution: Predictive = field(compare=False)

    def samples(self, n: int, seed: int = 0) -> np.ndarray:
        """Return n independent draws of the value; the same seed gives the same draws."""
        n, seed = require_int("samples(n)", n, 1), require_int("seed", seed, 0)
        draws: np.ndarray = self._distribution.sample(generator(seed), (n,)).numpy()
        return draws

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields."""
        return {name: part for name, part in vars(self).items() if name != "_distribution"}

    @property
    def text(self) -> str:
        """The median and the interval in one line."""
        return (
            f"{number(self.median, 4)}, between {interval(self.lower, self.upper, 'and', 4)} with "
            f"probability {percent(self.level)}"
        )

    def __repr__(self) -> str:
        what = "result" if self.observation_noise else "value"
        return f"Prediction({what} {self.text}, at {config_text(self.config)})"

    def _repr_html_(self) -> str:
        what = "a new result" if self.observation_noise else "the function without noise"
        rows = [
            ("config", config_text(self.config)),
            ("mean", self.mean),
            ("median", self.median),
            (f"{percent(self.level)} interval", interval(self.lower, self.upper)),
        ]
        return html_table(rows, title=f"Prediction of {what}")


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The config to use, and the result to expect from evaluating it.

    With noise, it is the config with the best posterior mean. Without noise, it is the best config
    evaluated, unless another one is better with a probability of at least 90 %.
    """

    config: Config
    mean: float
    lower: float
    upper: float
    level: float
    """Probability that an evaluation gives a result between `lower` and `upper`."""
    median: float
    """The median. If the distribution is skewed, the mean may be far from it."""

    @property
    def text(self) -> str:
        """The recommendation in one line."""
        return (
            f"{config_text(self.config)}; expected result {number(self.median, 4)}, between "
            f"{interval(self.lower, self.upper, 'and', 4)} with probability {percent(self.level)}"
        )

    def __repr__(self) -> str:
        return f"Recommendation({self.text})"

    def _repr_html_(self) -> str:
        rows = [
            *self.config.items(),
            ("expected result", self.median),
            (f"{percent(self.level)} interval", interval(self.lower, self.upper)),
        ]
        return html_table(rows, title="Recommendation")


def predict(
    fitted: Fitted,
    space: Space,
    configs: Sequence[Mapping[str, Any]],
    *,
    level: float,
    observation_noise: bool,
) -> list[Prediction]:
    """A prediction for each of the configs."""
    level = check_level(level)
    checked = [space.check(config) for config in configs]
    if not checked:
        return []
    with torch.no_grad():
        X = space.encode_all(checked)
        distribution = fitted.predict(X) if observation_noise else fitted.latent(X)
        shares = torch.tensor([(1 - level) / 2, 0.5, (1 + level) / 2], dtype=torch.float64)
        lower, median, upper = distribution.icdf(shares[:, None]).tolist()
        parts = zip(distribution.mean.tolist(), median, lower, upper, strict=True)
    return [
        Prediction(config, *numbers, level, observation_noise, distribution[i])
        for i, (config, numbers) in enumerate(zip(checked, parts, strict=True))
    ]


def check_level(level: Any) -> float:
    """The level as a float, or a `DataError` unless it is a probability between 0 and 1."""
    number = as_float(level)
    if number is None or not 0 < number < 1:
        raise DataError(f"level: must be between 0 and 1, not {shown(level)}.")
    return number
