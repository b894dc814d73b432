"""Trials and the ledger that keeps them: which configs were asked for, and what came of them."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from amortes.acquisition.units import LARGEST
from amortes.errors import DataError, shown
from amortes.numbers import as_float
from amortes.optimiser.space import Config, Space
from amortes.optimiser.text import config_text, html_table, shortened

ROUNDED = 1e-3
"""Coordinates closer than this may differ by rounding only."""
FAR = 20.0
"""Results are left out that are worse than the best three quarters by more than this many times
what these span, as in plots: one penalty of 1e30 would make every gain look small."""
Status = Literal["done", "failed", "pending", "withdrawn"]


@dataclass(frozen=True, repr=False)
class Trial:
    """One evaluation: a config and, once it is told, its value.

    number: counts the trials of a run from 0.
    config: a value for each parameter; `trial["lr"]` is short for `trial.config["lr"]`.
    status: "pending" until a result is told, then "done"; "failed" if there is no usable value;
        "withdrawn" if the trial was taken back.
    value: the result.
    cost: what the evaluation cost, if that was told.
    reason: why the trial failed.
    violation: by how much a constraint is violated, if that was told; zero or less if it is
        satisfied.
    """

    number: int
    config: Config
    status: Status = "pending"
    value: float | None = None
    cost: float | None = None
    reason: str | None = None
    violation: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.config[name]

    def __repr__(self) -> str:
        said = shortened(self.value) if self.status == "done" else self.status
        if self.status == "failed" and self.reason:
            said += f" ({shortened(self.reason)})"
        told = ("cost", "violation")
        more = [f"{name} {shortened(n)}" for name in told if (n := getattr(self, name)) is not None]
        outcome = ", ".join([said, *more])
        return f"Trial({self.number}: {outcome}; {config_text(self.config)})"

    def _repr_html_(self) -> str:
        told = ("status", "value", "cost", "reason", "violation")
        rows = [(name, part) for name in told if (part := getattr(self, name)) is not None]
        return html_table([*self.config.items(), *rows], title=f"Trial {self.number}")

    def copy(self) -> Self:
        """Return the same trial with its own copy of the config."""
        return dataclasses.replace(self, config=copied(self.config))

    @property
    def told(self) -> dict[str, Any]:
        """What to `tell` of the config to have its outcome again, as arguments by name."""
        told = {name: getattr(self, name) for name in ("value", "cost", "reason", "violation")}
        return told | {"failed": self.status == "failed"}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict; `Trial(**fields)` inverts it."""
        return vars(self) | {"config": copied(self.config)}


def outcome(
    value: Any,
    cost: Any = None,
    *,
    failed: bool = False,
    reason: str | BaseException | None = None,
    violation: Any = None,
) -> dict[str, Any]:
    """What came of an evaluation, checked, as fields of a `Trial`.

    Without a usable number, or with a violation, it counts as failed.
    """
    cost, reason = None if cost is None else positive(cost), _text(reason)
    by = as_float(violation)
    if violation is not None and (by is None or not abs(by) <= LARGEST):
        raise DataError(
            f"a violation must be a finite number, at most {LARGEST:g} in size, not "
            f"{shown(violation)}."
        )
    if not isinstance(failed, bool | np.bool_):
        raise DataError(f"failed: must be True or False, not {shown(failed)}.")
    if failed and value is not None:
        raise DataError(f"got failed=True and the value {shown(value)}; pass only one of them.")
    number = as_float(value)
    if number is None and not failed:
        raise DataError(
            f"a result must be a number, not {shown(value)}. If the evaluation has no result, "
            f"use `tell(trial, failed=True)`."
        )
    if number is not None and not abs(number) <= LARGEST:  # written so that NaN fails
        number, reason = None, reason or f"the value was {number:g}"
    if number is not None and by is not None and by > 0:
        said = f"the value was {number:g}, but a constraint is violated by {by:g}"
        number, reason = None, reason or said
    status = "failed" if number is None else "done"
    return {"status": status, "value": number, "cost": cost, "reason": reason, "violation": by}


class Ledger:
    """The trials of one space by number, with their points."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trials: list[Trial] = []
        self.changes = 0  # to what the trials say; grows
        self._points: list[Tensor] = []

    def open(self, checked: Config) -> Trial:
        """Record a config, which is checked already, as being evaluated."""
        return self._add(Trial(len(self.trials), checked))

    def _add(self, trial: Trial) -> Trial:
        self.trials.append(trial)
        point = self.space.point_of(trial.config)
        self._points.append(torch.tensor(point, dtype=torch.float64))
        return trial

    def forget(self, known: int) -> None:
        """Keep the first `known` trials only."""
        del self.trials[known:], self._points[known:]
        self.changes += 1

    def withdraw(self, number: int) -> None:
        """Go on as if this trial had never been."""
        self.trials[number] = Trial(number, self.trials[number].config, "withdrawn")
        self.changes += 1

    def before(self, number: int) -> "Ledger":
        """A copy with the trials of smaller numbers only."""
        other = Ledger(self.space)
        other.trials, other._points = self.trials[:number], self._points[:number]
        return other

    def close(self, number: int, told: Mapping[str, Any]) -> Trial:
        """Record the `outcome` of a pending trial."""
        trial = self.trials[number]
        if trial.status == "withdrawn":
            raise DataError(
                f"trial {number} was withdrawn; tell its config instead: `tell(trial.config, "
                f"value)`."
            )
        if trial.status != "pending":
            was = f"told {trial.value}" if trial.status == "done" else "told as failed"
            raise DataError(
                f"trial {number} was already {was}. To add a repeated measurement, use "
                f"`tell(trial.config, value)`; to correct a mistake, `withdraw(trial)` first."
            )
        self.trials[number] = dataclasses.replace(trial, **told)
        self.changes += 1
        return self.trials[number]

    def find(self, checked: Config, *status: Status, within: float = 0.0) -> list[Trial]:
        """Trials with one of these states and this config, or one whose point is that close."""
        point = torch.tensor(self.space.point_of(checked), dtype=torch.float64)
        trials = self.having(*status)
        near = ((self.points_of(trials) - point).abs() <= within).all(1).tolist()
        return [trial for trial, found in zip(trials, near, strict=True) if found]

    def pending(self, checked: Config) -> Trial | None:
        """The first pending trial of this config."""
        return next(iter(self.find(checked, "pending")), None)

    def having(self, *status: Status) -> list[Trial]:
        """The trials with one of these states, by number."""
        return [trial for trial in self.trials if trial.status in status]

    def points(self, *status: Status) -> Tensor:
        """The points of the trials with one of these states: `n x d`."""
        return self.points_of(self.having(*status))

    def points_of(self, trials: Sequence[Trial]) -> Tensor:
        """The points of some of the trials: `n x d`."""
        chosen = [self._points[trial.number] for trial in trials]
        return torch.stack(chosen) if chosen else torch.empty(0, self.space.d, dtype=torch.float64)

    def values(self) -> Tensor:
        """The values of the trials that are done: `n`."""
        return torch.tensor([t.value for t in self.having("done")], dtype=torch.float64)

    def numbers(self, field: Literal["cost", "violation"]) -> tuple[Tensor, Tensor]:
        """Points, `n x d`, and costs or violations, `n`, of all trials with one told."""
        chosen = [trial for trial in self.trials if getattr(trial, field) is not None]
        told = [getattr(trial, field) for trial in chosen]
        return self.points_of(chosen), torch.tensor(told, dtype=torch.float64)

    def to_list(self) -> list[dict[str, Any]]:
        """JSON-ready trials."""
        to_json = self.space.to_json
        return [trial.to_dict() | {"config": to_json(trial.config)} for trial in self.trials]

    def restore(self, rows: list[dict[str, Any]]) -> None:
        """Refill an empty ledger with what `to_list` gave; anything else is a `DataError`."""
        for number, row in enumerate(rows):
            try:
                self._restore(number, Trial(**row))
            except (TypeError, DataError) as error:
                raise DataError(f"trials[{number}]: {error}") from None

    def _restore(self, number: int, trial: Trial) -> None:
        if type(trial.number) is not int or trial.number != number:
            raise DataError(f"number: must be {number}, not {shown(trial.number)}.")
        if trial.status not in get_args(Status):
            raise DataError(
                f"status: must be one of {', '.join(get_args(Status))}, not {shown(trial.status)}."
            )
        for field in ("value", "cost", "violation"):
            told = getattr(trial, field)
            missing = told is None and field == "value" and trial.status == "done"
            if missing or isinstance(told, bool) or not isinstance(told, int | float | None):
                raise DataError(f"{field}: must be a number, not {shown(told)}.")
        restored = Trial(number, self.space.from_json(trial.config), trial.status)
        if trial.status in ("done", "failed"):
            restored = dataclasses.replace(restored, **outcome(**trial.told))
        numbers = ("value", "violation", "cost")
        wrong = [name for name in numbers if getattr(restored, name) != getattr(trial, name)]
        if trial.status == "done" and (trial.violation or 0.0) > 0:
            wrong = ["violation"]
        for name in wrong:
            raise DataError(
                f"{name}: a trial that is {trial.status} cannot have {shown(getattr(trial, name))}."
            )
        self._add(restored)


def positive(cost: Any) -> float:
    """The cost as a float, or a `DataError`."""
    number = as_float(cost)
    if number is None or not 0 < number <= LARGEST:
        raise DataError(f"a cost must be a positive, finite number, not {shown(cost)}.")
    return number


def best_trial(trials: Sequence[Trial], space: Space, *, maximise: bool) -> Trial | None:
    """The trial with the best value, one that the space allows if there is any."""
    done = [trial for trial in trials if trial.status == "done"]
    done.sort(key=lambda trial: trial.value or 0.0, reverse=maximise)
    allowed = (trial for trial in done if space.allows(trial.config))
    return next(allowed, done[0] if done else None)


def robust_sd(values: Sequence[float], *, maximise: bool) -> float:
    """The standard deviation of results, without those that are worse than all others by far."""
    badness = sorted(-value if maximise else value for value in values)
    usual = badness[3 * (len(badness) - 1) // 4]
    reach = usual + FAR * (usual - badness[0]) if usual > badness[0] else math.inf
    return statistics.pstdev(value for value in badness if value <= reach)


def copied(value: Any) -> Any:
    """Lists and dicts that may be changed; everything in them as it is."""
    if type(value) is dict:
        return {k: copied(v) for k, v in value.items()}
    return [copied(v) for v in value] if type(value) is list else value


def _text(reason: Any) -> str | None:
    """A reason as text; that of an exception is its type and message."""
    if isinstance(reason, BaseException):
        return f"{type(reason).__name__}: {reason}".removesuffix(": ")
    if not isinstance(reason, str | None):
        raise DataError(f"reason: must be a string or an exception, not {shown(reason)}.")
    return reason
