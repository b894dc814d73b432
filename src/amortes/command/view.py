"""What a run looks like while it runs: a table of its trials, and how the best value developed."""

import itertools
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from amortes.optimiser import Trial
from amortes.optimiser.insight import Goal
from amortes.optimiser.text import number

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48  # characters of a sparkline
ROWS = 12  # trials shown, the newest
STYLES = {"done": "", "failed": "red", "pending": "yellow"}


def best_so_far(trials: Sequence[Trial], goal: Goal) -> list[float]:
    """The best value after each trial that is done."""
    values = [trial.value for trial in trials if trial.value is not None]
    return list(itertools.accumulate(values, max if goal == "maximize" else min))


def sparkline(values: Sequence[float]) -> str:
    """A bar per value, from the smallest to the largest; some of very many."""
    if len(values) > WIDTH:
        values = [values[(i + 1) * len(values) // WIDTH - 1] for i in range(WIDTH)]
    if not values:
        return ""
    low, high = min(values), max(values)
    top = len(BARS) - 1
    scale = top / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in values)


def show(
    trials: Sequence[Trial], seconds: Mapping[int, float], *, past: int, total: int, goal: Goal
) -> RenderableType:
    """The view; `seconds` are those of the trials under way, by number.

    The first `past` trials are results it began with; they count for the best only.
    """
    best = best_so_far(trials, goal)
    trials = [trial for trial in trials[past:] if trial.status != "withdrawn"]
    ended = sum(trial.status != "pending" for trial in trials)
    failed = sum(trial.status == "failed" for trial in trials)
    line = Text(f"{ended} of {total} trials", style="bold")
    line.append(f", {failed} failed" if failed else "", style="red")
    if best:
        line.append(f"   best {number(best[-1])} ")
        line.append(sparkline(best), style="green")
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    table = Table(box=None, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column("value", justify="right")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="ellipsis", no_wrap=True)
    table.add_column("", overflow="ellipsis", no_wrap=True)
    for trial in trials[-ROWS:]:
        style = STYLES[trial.status]
        if best and trial.value == best[-1]:
            style = "bold green"
        cells = [Text(number(trial.config.get(name, ""))) for name in names]
        note = trial.reason or ""
        if trial.status == "pending":
            note = f"{seconds[trial.number]:.0f} s" if trial.number in seconds else "waiting"
        states = {"failed": "failed", "pending": "running"}
        value = states.get(trial.status) or number(trial.value)
        table.add_row(str(trial.number), value, *cells, Text(note), style=style)
    return Group(line, table)


def describe(trial: Trial) -> str:
    """One line about a trial that ended, for output that is not a terminal."""
    config = " ".join(f"{name}={number(value)}" for name, value in trial.config.items())
    outcome = f"failed, {trial.reason}" if trial.value is None else number(trial.value)
    return f"trial {trial.number}: {outcome}  ({config})"
