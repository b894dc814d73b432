"""A figure of a run: the results so far, and what the model makes of each parameter."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.colours import BLUE, GREEN, GREY, ORANGE
from amortes.optimiser.choices import Choices
from amortes.optimiser.numeric import Float, Numeric
from amortes.optimiser.parameter import Parameter
from amortes.optimiser.plots.picture import Picture
from amortes.optimiser.space import Config, Space
from amortes.optimiser.trials import Trial

COLUMNS = 4
GRID = 80
LEVEL = 0.9


def draw_run(
    trials: Sequence[Trial],
    *,
    maximise: bool,
    space: Space,
    fitted: Fitted | None = None,
    recommended: Config | None = None,
) -> Figure:
    """The history and, given a model, the predictive along each parameter through a config.

    Bands and bars are central intervals of probability `LEVEL`; the broken line is the config. Dots
    are results as the model takes them, perhaps with their bad tail drawn in.
    """
    if fitted is None or recommended is None:
        figure = Picture(11.0, 3.2)
        _history(figure.subplots(), trials, maximise=maximise)
        return figure
    names = [name for name in space.free if name in recommended]
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Picture(11.0, 3.2 + 2.6 * rows)
    grid = figure.add_gridspec(1 + rows, columns, height_ratios=[3.2] + [2.6] * rows)
    _history(figure.add_subplot(grid[0, :]), trials, maximise=maximise)
    done = [trial for trial in trials if trial.status == "done"]
    first: Axes | None = None
    for i, name in enumerate(names):
        ax = figure.add_subplot(grid[1 + i // columns, i % columns], sharey=first)
        _slice(ax, name, space, fitted, recommended, done)
        if i % columns == 0:
            ax.set_ylabel("value")
        if i == 0:
            ax.legend(frameon=False, fontsize="small")
        first = first or ax
    return figure


def _history(ax: Axes, trials: Sequence[Trial], *, maximise: bool) -> None:
    done = [(trial.number, trial.value) for trial in trials if trial.value is not None]
    failed = [trial.number for trial in trials if trial.status == "failed"]
    numbers, values = [n for n, _ in done], [v for _, v in done]
    ax.scatter(numbers, values, s=16, color=GREY, label="result", zorder=3)
    best = torch.tensor(values, dtype=torch.float64)
    if values:
        best = (best.cummax(0) if maximise else best.cummin(0)).values
        ax.step(numbers, best.tolist(), where="post", color=BLUE, label="best so far")
    for i, number in enumerate(failed):
        label = None if i else "failed"
        ax.axvline(number, color=ORANGE, lw=0.8, alpha=0.6, label=label)
    ax.set_xlabel("trial")
    ax.set_ylabel("value")
    ax.set_title(f"{len(done)} results" + (f", {len(failed)} failed" if failed else ""))
    if done or failed:
        ax.legend(frameon=False, fontsize="small")


def _slice(
    ax: Axes, name: str, space: Space, fitted: Fitted, centre: Config, done: Sequence[Trial]
) -> None:
    """The predictive of y along one parameter, the others held at `centre`."""
    parameter = space.free[name]
    values = _values(parameter)
    configs = [space.adapted({**centre, name: value}) for value in values]
    low, middle, high = _band(fitted, space.encode_all(configs))

    def across(value: Any) -> float:
        return parameter.place(value) if isinstance(parameter, Choices) else value

    x = [across(value) for value in values]
    if isinstance(parameter, Float):
        ax.fill_between(x, low, high, color=BLUE, alpha=0.2, lw=0, label=f"{LEVEL:.0%} interval")
        ax.plot(x, middle, color=BLUE, label="mean")
    else:
        ax.vlines(x, low, high, color=BLUE, alpha=0.4, lw=3, label=f"{LEVEL:.0%} interval")
        ax.scatter(x, middle, color=BLUE, s=18, zorder=3, label="mean")
    told = [
        (t.config[name], y)
        for t, y in zip(done, fitted.y.tolist(), strict=True)
        if name in t.config
    ]
    ax.scatter([across(v) for v, _ in told], [y for _, y in told], s=8, color=GREY, alpha=0.6)
    ax.axvline(across(centre[name]), color=GREEN, lw=1.0, ls="--", label="recommended")
    if isinstance(parameter, Numeric):
        ax.set_xscale("log" if parameter.log else "linear")
    else:
        ax.set_xticks(x, [_text(value) for value in values], rotation=30 if len(x) > 3 else 0)
    ax.set_xlabel(_text(name))


def _text(value: Any) -> str:
    """As it is: dollar signs begin no formula."""
    return str(value).replace("$", r"\$")


def _values(parameter: Parameter) -> list[Any]:
    """Values to draw, in order: all, or some spread over the range."""
    if isinstance(parameter, Choices):
        return parameter.values()[:: math.ceil(len(parameter.choices) / GRID)]
    if parameter.cardinality is not None and parameter.cardinality <= GRID:
        return parameter.values()
    steps = torch.linspace(0, 1, GRID, dtype=torch.float64).tolist()
    return list(dict.fromkeys(parameter.decode([u]) for u in steps))


def _band(fitted: Fitted, X: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Lower end, mean and upper end of the predictive interval at X, `m x d`."""
    with torch.no_grad():
        predicted = fitted.predict(X)
        tails = torch.tensor([(1 - LEVEL) / 2, (1 + LEVEL) / 2], dtype=torch.float64)[:, None]
        low, high = predicted.icdf(tails)
        return low.tolist(), predicted.mean.tolist(), high.tolist()
