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
        """All trials in the order of their numbers, including pending and failed ones."""
        with self._lock:
            return [trial.copy() for trial in self._ledger.trials]

    @property
    @on_cpu()
    def best(self) -> Trial:
        """The trial with the best result so far. If results are noisy, prefer `recommend`.

        Results for configs that violate a constraint, or are not in the pool, count only if there
        are no others.
        """
        with self._lock:
            done = self._ledger.having("done")
        if not done:
            raise DataError("there is no result yet; tell one first.")
        done.sort(key=lambda trial: trial.value or 0.0, reverse=self.goal == "maximize")
        return next((t for t in done if self.space.allows(t.config)), done[0]).copy()

    @on_cpu()
    def recommend(self, *, level: float = 0.9) -> Recommendation:
        """Return the config to use, with the result to expect from it.

        With noise, it is the config with the best posterior mean, whether it has been evaluated or
        not. Without noise, it is the best config evaluated, unless another one is almost certainly
        better. `level` is the probability of the interval.
        """
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
        """Predict the value of a config, or of each config in a list.

        configs: a config, a trial, or a list of them.
        level: the probability of the interval.
        observation_noise: False to predict the function itself, True to predict a new, noisy
            result. A network that cannot tell the two apart always predicts a new result.
        """
        one = isinstance(configs, Trial | Mapping)
        asked: Any = [configs] if one else configs
        if isinstance(asked, str | bytes) or not isinstance(asked, Iterable):
            raise DataError(f"predict: expected a config or a list of configs, not {configs!r}.")
        plain = [point.config if isinstance(point, Trial) else point for point in asked]
        with self._lock:
            fitted = self._suggester.fitted()
            predicted = predict(
                fitted, self.space, plain, level=level, observation_noise=observation_noise
            )
        return predicted[0] if one else predicted

    @on_cpu()
    def explain(self, trial: Point, *, level: float = 0.9) -> Explanation:
        """Explain why a trial was suggested, or what the model thinks of a config.

        The explanation has the predicted value, the expected gain, and the closest result. A trial
        is explained by what the model knew when it suggested it, a config by what it knows now.
        `print(opt.explain(trial).text)` prints it in words.
        """
        level = check_level(level)
        with self._lock:
            if isinstance(trial, Trial):
                self._check_own(trial)
                trial = self._ledger.trials[trial.number]  # as it is now
            return explain(self._suggester, trial, past=self.past, level=level)

    def to_frame(self) -> "pd.DataFrame":
        """Return the trials as a pandas DataFrame, with a column for each parameter.

        Save it with `to_csv(path, index=False)` or `to_parquet(path)`. `tell_frame`, the argument
        `start` and `amortes optimize --start` read such tables.
        """
        return to_frame(self.trials, self.space)

    @on_cpu()
    def importance(self) -> dict[str, float]:
        """Return how much each parameter matters, largest first.

        It is the share of the parameter in the variation of the posterior mean over the space.
        """
        with self._lock:
            fitted = self._suggester.fitted()
            return importance(
                fitted.posterior_mean, self.space, generator(self._suggester.seed_for("importance"))
            )

    @on_cpu()
    def gains(self, configs: Sequence[Point]) -> list[float]:
        """Return what it would be worth to evaluate each config, by the acquisition function.

        It is the expected improvement, or the information about the optimum in nats (pes, mes,
        jes), times the probability of success and divided by the cost. Pending trials are taken
        into account.
        """
        plain = [point.config if isinstance(point, Trial) else point for point in configs]
        with self._lock:
            return self._suggester.gains(self.space.encode_all(plain)).tolist()

    @on_cpu()
    def expected_gain(self) -> float:
        """Return the improvement to expect from the best possible next trial.

        It is in the units of the values, and compares the objective without noise with the best
        posterior mean of a config evaluated so far. When it is too small to be worth an evaluation,
        stop.
        """
        with self._lock:
            return self._suggester.largest_improvement()

    @property
    def plot(self) -> Plots:
        """Figures of the run. `plot()` draws one page; `plot.convergence()`, `plot.slices()`,
        `plot.contour(x, y)`, `plot.importance()`, `plot.parallel()` and `plot.gain()` draw others.
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
                f"trial {shown(trial.number)} with {shown(trial.config)} does not belong to this "
                f"optimiser, or its config was changed. To change a config, copy it first: "
                f"`dict(trial.config)`."
            )
