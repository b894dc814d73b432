"""The config to use in the end."""

from dataclasses import dataclass

from amortes.optimiser.space import Config
from amortes.optimiser.text import config_text, html_table, interval, number, percent


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
