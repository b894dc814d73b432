"""What an optimiser knows: results, predictions, explanations, importance, figures, a summary.

All of it reads the trials and the model; nothing here changes a run.
"""

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from amortes.errors import DataError, shown
from amortes.optimiser.choices import Choices
from amortes.optimiser.conditions import Condition
from amortes.optimiser.explanation import Explanation, explain, importance
from amortes.optimiser.numeric import Int, Numeric
from amortes.optimiser.plots import Plots
from amortes.optimiser.prediction import Prediction, Recommendation, check_level, predict
from amortes.optimiser.space import Space
from amortes.optimiser.suggest import Suggester
from amortes.optimiser.table import to_frame
from amortes.optimiser.text import (
    config_text,
    counted,
    html_table,
    number,
    printable,
    shortened,
)
from amortes.optimiser.trials import Ledger, Status, Trial, best_trial, copied
from amortes.random import generator
from amortes.threads import on_cpu

if TYPE_CHECKING:
    import pandas as pd

Goal = Literal["minimize", "maximize"]
Point = Trial | Mapping[str, Any]
"""A trial or its config."""
MOST = 8
"""Parameters, choices or pending trials that a summary lists."""


class Insight:
    """The part of an `Optimizer` that reads."""

    space: Space
    goal: Goal
    past: int
    _lock: threading.RLock
    _ledger: Ledger
    _suggester: Suggester

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
        best = best_trial(self.trials, self.space, maximise=self.goal == "maximize")
        if best is None:
            raise DataError("there is no result yet; tell one first.")
        return best

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
            config = copied(self._suggester.recommend())
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
            subject = self._own(trial) if isinstance(trial, Trial) else trial
            return explain(self._suggester, subject, past=self.past, level=level)

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

    def _summary(self, *, recommend: bool) -> list[tuple[str, str]]:
        """Names and texts of what there is to say of the run."""
        with self._lock:
            trials = self._ledger.trials
            rows = [("space", describe_space(self.space)), ("trials", count_trials(trials))]
            if self._ledger.having("done"):
                rows.append(("best", best_text(self.best)))
                if recommend or self._suggester.has_recommended:
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

    def _own(self, trial: Trial) -> Trial:
        """A trial of this optimiser, as it is now."""
        trials = self._ledger.trials
        with contextlib.suppress(DataError):
            if isinstance(trial.number, int) and 0 <= trial.number < len(trials):
                own = trials[trial.number]
                if own.config == self.space.check(trial.config):
                    return own
        raise DataError(
            f"trial {shown(trial.number)} with {shown(trial.config)} does not belong to this "
            f"optimiser, or its config was changed. To change a config, copy it first: "
            f"`dict(trial.config)`."
        )


def describe_parameter(entry: Any) -> str:
    """A parameter or a constant as one reads it: `1e-05 to 0.1, log`, `relu | gelu`, `7`."""
    if isinstance(entry, Numeric):
        step = None if isinstance(entry, Int) and entry.step == 1 else entry.step
        parts = [f"{number(entry.low)} to {number(entry.high)}"]
        parts += [f"step {number(step)}"] * (step is not None) + ["log"] * entry.log
        return ", ".join(parts)
    if isinstance(entry, Choices):
        shown = " | ".join(shortened(choice) for choice in entry.choices[:MOST])
        left = len(entry.choices) - MOST
        return f"{shown} | ... {left} more" if left > 0 else shown
    return shortened(entry)


def describe_space(space: Space) -> str:
    """The space in one line."""
    named = [
        f"{printable(k)}: {describe_parameter(p)}{_describe_condition(space.conditions.get(k))}"
        for k, p in space.parameters.items()
    ]
    text = "; ".join(named[:MOST])
    if len(named) > MOST:
        text += f"; ... {len(named) - MOST} more"
    if space.constraints:
        text += f"; {counted(len(space.constraints), 'constraint')}"
    if space.pool is not None and space.points is not None:
        text += f"; a pool of {len(space.points)}"
    return text


def _describe_condition(condition: Condition | None) -> str:
    if condition is None:
        return ""
    values = " | ".join(shortened(value) for value in condition.values[:MOST])
    more = " | ..." if len(condition.values) > MOST else ""
    return f" (if {printable(condition.parent)} is {values}{more})"


def count_trials(trials: Sequence[Trial]) -> str:
    """How many trials there are in each state, `15 done, 2 failed, 1 pending`."""
    kinds = [trial.status for trial in trials]
    counts = [f"{kinds.count(kind)} {kind}" for kind in get_args(Status) if kind in kinds]
    return ", ".join(counts) or "none"


def best_text(best: Trial) -> str:
    """The best trial in one line."""
    return f"{number(best.value)}, trial {best.number}: {config_text(best.config)}"


def next_step(trials: Sequence[Trial], initial: int) -> str:
    """What to call now."""
    waiting = [str(trial.number) for trial in trials if trial.status == "pending"]
    if waiting:
        which = ", ".join(waiting[:MOST]) + (", ..." if len(waiting) > MOST else "")
        return f"tell(trial, value) for trial{'s' * (len(waiting) > 1)} {which}, or ask() for more"
    used = sum(trial.status != "withdrawn" for trial in trials)
    if used < initial:
        return f"ask() for trial {used + 1} of the {initial} that are spread over the space"
    return "ask() for a trial, recommend() for what to use"


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Lines of a name and a text, the texts below each other."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)
