"""What to use in the end."""

from dataclasses import dataclass

from amortes.optimiser.space import Config
from amortes.optimiser.text import config_text, html_table, interval, number, percent


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The config to use, and what an evaluation of it is expected to give.

    It is that of the best posterior mean or, if there is no noise to speak of, the best one tried
    unless the other is almost surely better (`amortes.acquisition.policy`).
    """

    config: Config
    mean: float
    lower: float
    upper: float
    level: float
    """Probability that an evaluation is between lower and upper."""
    median: float
    """What is as likely exceeded as not; of a skewed distribution the mean may be far from it."""

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
