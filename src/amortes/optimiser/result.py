"""What `minimize` returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amortes.optimiser.insight import aligned, count_trials, describe_space
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.plots import Plots
from amortes.optimiser.space import Config
from amortes.optimiser.table import to_frame
from amortes.optimiser.text import config_text, html_table, number
from amortes.optimiser.trials import Trial

if TYPE_CHECKING:
    import pandas as pd

NEXT = "result.plot(), result.optimizer.recommend(), or minimize with more trials"


@dataclass(frozen=True, repr=False)
class Result:
    """What `minimize` returns. Print it for a summary."""

    x: Config
    """The config with the best result."""
    fun: float
    """The best result."""
    n_trials: int
    """Number of evaluations, including failed ones and those of earlier calls."""
    trials: list[Trial]
    """All trials, including the past results that the run started from."""
    optimizer: Optimizer
    """The optimiser, to continue with, and for `recommend()`, `explain()`, `save()` and so on."""
    message: str
    """Why the run ended."""

    @property
    def plot(self) -> Plots:
        """Figures of the run: `plot()`, `plot.convergence()` and others; see `Optimizer.plot`."""
        return self.optimizer.plot

    def to_frame(self) -> "pd.DataFrame":
        """Return the trials as a pandas DataFrame; see `Optimizer.to_frame`."""
        return to_frame(self.trials, self.optimizer.space)

    def __repr__(self) -> str:
        return f"Result: {self.message}\n{aligned(self._summary())}"

    def _repr_html_(self) -> str:
        return html_table(self._summary(), title=f"Result: {self.message}")

    def _summary(self) -> list[tuple[str, str]]:
        """Names and texts of what there is to say."""
        return [
            ("space", describe_space(self.optimizer.space)),
            ("trials", count_trials(self.trials)),
            ("best", f"{number(self.fun)}: {config_text(self.x)}"),
            ("recommendation", self.optimizer.recommend().text),
            ("next", NEXT),
        ]
