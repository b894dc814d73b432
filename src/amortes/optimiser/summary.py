"""A run in a few lines: its space, its trials, the best, the recommendation, the next step."""

from collections.abc import Sequence
from typing import Any, get_args

from amortes.optimiser.choices import Choices
from amortes.optimiser.conditions import Condition
from amortes.optimiser.numeric import Int, Numeric
from amortes.optimiser.space import Space
from amortes.optimiser.text import config_text, counted, number, printable, shortened
from amortes.optimiser.trials import Status, Trial

MOST = 8
"""Parameters, choices or pending trials that are listed."""


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
    return text if space.pool is None else f"{text}; a pool of {space.count}"


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
