"""From what a form says to a space: mistakes are found all at once, each with its field."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from amortes.errors import ConfigError
from amortes.lab.errors import FormError, Problem
from amortes.lab.formula import parse
from amortes.lab.schemas import (
    MOST_PARAMETERS,
    AnyParameter,
    ChoiceParameter,
    Constraints,
    FixedParameter,
    FloatParameter,
    IntParameter,
    LinearConstraint,
    Parameter,
    SpaceForm,
)
from amortes.optimiser import Linear, Space
from amortes.optimiser.conditions import Condition
from amortes.optimiser.description import parameter_of
from amortes.optimiser.design import sobol_points
from amortes.optimiser.expression import Expression
from amortes.optimiser.table import OUTCOME

RESERVED = ("trial", *OUTCOME)
"""Columns of the table of results, which a parameter cannot be told from."""


def build_space(form: SpaceForm) -> Space:
    """The space that is meant, or a `FormError` with all that is wrong."""
    parts = _Parts(dict(enumerate(form.parameters)), [entry.name for entry in form.parameters])
    constraints = parts.limits(form.constraints)
    problems = parts.problems
    if not problems and all(isinstance(p, FixedParameter) for p in form.parameters):
        text = "Nothing varies: give at least one parameter a range or choices."
        problems.append(Problem("parameters", text))
    if not problems:
        conditions = {
            entry.name: Condition(entry.when.parameter, tuple(entry.when.values))
            for entry in form.parameters
            if entry.when is not None
        }
        with _noting(problems, "constraints"):
            space = Space(parts.made, constraints=constraints, conditions=conditions)
            if _possible(space):
                return space
            text = "Within the ranges, no values satisfy all of these limits."
            problems.append(Problem("constraints", text))
    raise FormError(problems)


def further_mistakes(form: Any) -> list[Problem]:
    """What is wrong in those parts of a form that are understood, where others are not."""
    rows = form.get("parameters") if isinstance(form, dict) else None
    if not isinstance(rows, list):
        return []
    rows = [row if isinstance(row, dict) else {} for row in rows[:MOST_PARAMETERS]]
    names = [str(row.get("name") or "").strip() for row in rows]
    entries: dict[int, AnyParameter] = {}
    for i, row in enumerate(rows):
        with contextlib.suppress(ValidationError):
            named = row | {"name": names[i] or f"parameter {i + 1}"}
            entries[i] = TypeAdapter(Parameter).validate_python(named)
    parts = _Parts(entries, names)
    with contextlib.suppress(ValidationError):
        parts.limits(TypeAdapter(Constraints).validate_python(form.get("constraints", [])))
    return parts.problems


class _Parts:
    """The parameters and limits of a form, and what is wrong with them.

    entries: parameters by their place in the form.
    names: those of all that are there, also if nothing else is known of them.
    """

    def __init__(self, entries: Mapping[int, AnyParameter], names: Sequence[str]) -> None:
        self.names = names
        self.made: dict[str, Any] = {}
        self.problems: list[Problem] = []
        for i, entry in entries.items():
            self._add(entry, f"parameters.{i}")
            earlier = [entries[k] for k in entries if k < i]
            unknown = {name for k, name in enumerate(names[:i]) if k not in entries}
            if entry.when is not None and entry.when.parameter not in unknown:
                self.problems += _wrong_condition(entry, earlier, f"parameters.{i}.when")

    def _add(self, entry: AnyParameter, at: str) -> None:
        if entry.name in self.made:
            text = f"There is already a parameter {entry.name}."
            self.problems.append(Problem(f"{at}.name", text))
            return
        if entry.name.lower() in RESERVED:
            text = f"{entry.name} is the name of a column of results; choose another one."
            self.problems.append(Problem(f"{at}.name", text))
        mistakes = list(_mistakes(entry, at))[:1]
        self.problems += mistakes
        self.made[entry.name] = None
        if not mistakes:
            with _noting(self.problems, at):
                self.made[entry.name] = _made(entry)

    def limits(self, given: Sequence[LinearConstraint | str]) -> list[Linear | Expression]:
        """The constraints."""
        made: list[Linear | Expression] = []
        for i, limit in enumerate(given):
            with _noting(self.problems, f"constraints.{i}"):
                if isinstance(limit, str):
                    made.append(parse(limit, self.names))
                else:
                    made.append(Linear(limit.coefficients, limit.upper))
        return made


def _possible(space: Space) -> bool:
    """Whether anything can be suggested."""
    try:
        return not space.constraints or next(sobol_points(space, seed=0), None) is not None
    except ConfigError:
        return False


def _wrong_condition(
    entry: AnyParameter, earlier: Sequence[AnyParameter], at: str
) -> Iterator[Problem]:
    assert entry.when is not None
    parent = next((p for p in earlier if p.name == entry.when.parameter), None)
    if not isinstance(parent, ChoiceParameter):
        text = f"{entry.when.parameter} must be a choice that stands above {entry.name}."
        yield Problem(at, text)
    elif strange := [v for v in entry.when.values if v not in parent.choices]:
        choices = ", ".join(map(str, parent.choices))
        yield Problem(at, f"{strange[0]} is not one of the choices of {parent.name}: {choices}.")


def _mistakes(entry: AnyParameter, at: str) -> Iterator[Problem]:
    """The usual mistakes, in plain words; the first is the one that is told."""
    if isinstance(entry, FloatParameter | IntParameter):
        step, whole = entry.step, isinstance(entry, IntParameter)
        if entry.low >= entry.high:
            text = f"The highest value must be above the lowest, which is {entry.low:g}."
            yield Problem(f"{at}.high", text)
        if entry.log and entry.low <= 0:
            yield Problem(f"{at}.low", "Orders of magnitude need a lowest value above 0.")
        if step is not None and not 0 < step <= entry.high - entry.low:
            text = "The step must be above 0, and at most the distance of lowest and highest."
            yield Problem(f"{at}.step", text)
        if entry.log and step is not None and not (whole and step == 1):
            yield Problem(f"{at}.step", "Steps and orders of magnitude do not go together.")
    if isinstance(entry, ChoiceParameter):
        if len(entry.choices) < 2:
            yield Problem(f"{at}.choices", "Give at least two choices, one on each line.")
        if len({str(choice) for choice in entry.choices}) < len(entry.choices):
            yield Problem(f"{at}.choices", "Each choice may be there only once.")


def _made(entry: AnyParameter) -> Any:
    if isinstance(entry, FixedParameter):
        return entry.value
    fields = entry.model_dump(exclude={"name", "unit", "when", "type"}, exclude_none=True)
    return parameter_of(entry.type, fields)


@contextlib.contextmanager
def _noting(problems: list[Problem], at: str) -> Iterator[None]:
    """What is wrong in the block becomes a problem of this field."""
    try:
        yield
    except ConfigError as error:
        problems.append(Problem(at, str(error)))
