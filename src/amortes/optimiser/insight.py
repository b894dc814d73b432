"""What an optimiser knows: results, predictions, explanations, importance, figures.

All of it reads the trials and the model; nothing here changes a run.
"""

import math
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from amortes.device import on_cpu
from amortes.errors import DataError, shown
from amortes.optimiser.explanation import Explanation, explain
from amortes.optimiser.importance import importance
from amortes.optimiser.plots.plots import Plots
from amortes.optimiser.prediction import Prediction, check_level, predict
from amortes.optimiser.recommendation import Recommendation
from amortes.optimiser.space import Config, Space
from amortes.optimiser.suggest import Suggester
from amortes.optimiser.summary import (
    aligned,
    best_text,
    count_trials,
    describe_space,
    next_step,
)
from amortes.optimiser.table import to_frame
from amortes.optimiser.text import html_table
from amortes.optimiser.trials import Ledger, Trial, copied
from amortes.random import generator

if TYPE_CHECKING:
    import pandas as pd

LARGEST_LOG = math.log(sys.float_info.max)

Goal = Literal["minimize", "maximize"]
Point = Trial | Mapping[str, Any]
"""A trial or its config."""


class Insight:
    """The part of an `Optimizer` that reads."""

    space: Space
    goal: Goal
    past: int
    _lock: threading.RLock
    _ledger: Ledger
    _suggester: Suggester
    _found: tuple[tuple[int, int], Config] | None = None  # the last recommendation, and when

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, pending and failed ones too."""
        with self._lock:
            return [trial.copy() for trial in self._ledger.trials]

    @property
    @on_cpu()
    def best(self) -> Trial:
        """The trial with the best value told; see `recommend` if values are noisy.

        Results told for configs that violate a constraint, or are not in the pool, count only if
        there are no others.
        """
        with self._lock:
            done = self._ledger.having("done")
        if not done:
            raise DataError("there is no result yet; tell one first.")
        done.sort(key=lambda trial: trial.value or 0.0, reverse=self.goal == "maximize")
        return next((t for t in done if self.space.allows(t.config)), done[0]).copy()

    @on_cpu()
    def recommend(self, *, level: float = 0.9) -> Recommendation:
        """The config with the best posterior mean, evaluated before or not."""
        level = check_level(level)
        with self._lock:
            fitted = self._suggester.fitted()
            config = self._recommended()
            if config is None:
                config = self._suggester.recommend()
                self._found = (self._now, config)
            config = copied(config)
            (result,) = predict(fitted, self.space, [config], level=level, observation_noise=True)
        return Recommendation(config, result.mean, result.lower, result.upper, level, result.median)

    @overload
    def predict(
        self, configs: Point, *, level: float = ..., observation_noise: bool = ...
    ) -> Prediction: ...

    @overload
    def predict(
        self, configs: Sequence[Point], *, level: float = ..., observation_noise: bool = ...
    ) -> list[Prediction]: ...

    @on_cpu()
    def predict(
        self,
        configs: Point | Sequence[Point],
        *,
        level: float = 0.9,
        observation_noise: bool = False,
    ) -> Prediction | list[Prediction]:
        """What the model expects of a config, or of each of several.

        Mean, median, the interval that holds the value with probability `level`, and samples, of
        the function without noise or, with `observation_noise`, of a new result. A network that
        cannot tell noise from function gives the latter in any case.
        """
        one = isinstance(configs, Trial | Mapping)
        asked: Any = [configs] if one else configs
        if isinstance(asked, str | bytes) or not isinstance(asked, Iterable):
            raise DataError(f"predict: expected a config, or a list of them, not {configs!r}.")
        plain = [point.config if isinstance(point, Trial) else point for point in asked]
        with self._lock:
            fitted = self._suggester.fitted()
            predicted = predict(
                fitted, self.space, plain, level=level, observation_noise=observation_noise
            )
        return predicted[0] if one else predicted

    @on_cpu()
    def explain(self, trial: Point, *, level: float = 0.9) -> Explanation:
        """Why evaluate this: what is expected, what is gained, and the closest result.

        A trial is explained by what was known when it was asked for, a config by what is known
        now. `print(opt.explain(trial).text)` says it in words; `amortes.optimiser.explanation` has
        the rules.
        """
        level = check_level(level)
        with self._lock:
            if isinstance(trial, Trial):
                self._check_own(trial)
                trial = self._ledger.trials[trial.number]  # as it is now
            return explain(self._suggester, trial, past=self.past, level=level)

    def to_frame(self) -> "pd.DataFrame":
        """The trials as a pandas DataFrame, with a column for each parameter.

        Its `to_csv(path, index=False)` and `to_parquet(path)` write tables that `tell_frame`,
        `start` and `amortes optimize --start` read.
        """
        return to_frame(self.trials, self.space)

    @on_cpu()
    def importance(self) -> dict[str, float]:
        """The share of each parameter in how the posterior mean varies, largest first."""
        with self._lock:
            fitted = self._suggester.fitted()
            return importance(
                fitted.posterior_mean, self.space, generator(self._suggester.seed_for("importance"))
            )

    @on_cpu()
    def gains(self, configs: Sequence[Point]) -> list[float]:
        """What evaluating each config is worth by the acquisition of the run; `ask` goes by it.

        Nats of information about the optimum (pes, mes, jes) or expected improvement, weighed by
        the chance of success and the cost, given the trials under way.
        """
        plain = [point.config if isinstance(point, Trial) else point for point in configs]
        with self._lock:
            return self._suggester.gains(self.space.encode_all(plain)).tolist()

    @on_cpu()
    def expected_gain(self) -> float:
        """The largest expected improvement any config offers, in the units of the values.

        Improvement of the objective without noise over its best posterior mean so far.
        """
        with self._lock:
            return self._suggester.largest_improvement()

    @property
    def plot(self) -> Plots:
        """Figures: `plot()` is one page; `plot.convergence()`, `plot.slices()`,
        `plot.contour(x, y)`, `plot.importance()`, `plot.parallel()` and `plot.gain()` are others.
        """
        return Plots(self)

    @property
    def _now(self) -> tuple[int, int]:
        """What a recommendation depends on; it is the same as long as this is."""
        return self._ledger.changes, len(self._ledger.trials)

    def _recommended(self) -> Config | None:
        """The config to recommend, if the search for it was made already."""
        return self._found[1] if self._found is not None and self._found[0] == self._now else None

    def _summary(self, *, recommend: bool) -> list[tuple[str, str]]:
        """Names and texts of what there is to say of the run."""
        with self._lock:
            trials = self._ledger.trials
            rows = [("space", describe_space(self.space)), ("trials", count_trials(trials))]
            if self._ledger.having("done"):
                rows.append(("best", best_text(self.best)))
                if recommend or self._recommended() is not None:
                    rows.append(("recommendation", self.recommend().text))
            return [*rows, ("next", next_step(trials, self._suggester.initial))]

    def __repr__(self) -> str:
        # A recommendation is a search, which debuggers that look at everything should not start.
        rows = self._summary(recommend=False)
        return f"Optimizer({self.goal}, {self._suggester.acquisition})\n{aligned(rows)}"

    @on_cpu()
    def _repr_html_(self) -> str:
        rows = self._summary(recommend=True)
        return html_table(rows, title=f"Optimizer: {self.goal}, {self._suggester.acquisition}")

    def _check_own(self, trial: Trial) -> None:
        trials = self._ledger.trials
        own = isinstance(trial.number, int) and 0 <= trial.number < len(trials)
        try:
            own = own and trials[trial.number].config == self.space.check(trial.config)
        except DataError:
            own = False
        if not own:
            raise DataError(
                f"trial {shown(trial.number)} with {shown(trial.config)} is not of this optimiser, "
                f"or its config was changed; work on `dict(trial.config)`."
            )
