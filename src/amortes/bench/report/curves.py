"""Curves: the mean over seeds, or tasks, of what a method has reached after n observations.

They are rows of `panel, method, iteration, mean, standard_error, samples`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

NO_CURVES = pd.DataFrame(
    {
        "panel": pd.Series(dtype=str),
        "method": pd.Series(dtype=str),
        "iteration": pd.Series(dtype=int),
        "mean": pd.Series(dtype=float),
        "standard_error": pd.Series(dtype=float),
        "samples": pd.Series(dtype=float),
    }
)


def average(rows: pd.DataFrame, keys: Sequence[str], column: str) -> pd.DataFrame:
    """Mean and standard error of a column where at least half of its series go on."""
    groups = rows.dropna(subset=[column]).groupby([*keys, "iteration"], sort=False)[column]
    found = groups.agg(mean="mean", standard_error="sem", samples="count").reset_index()
    most = found.groupby(list(keys))["samples"].transform("max")
    return found[2 * found["samples"] >= most]


def problem_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """A curve for each problem and method, in the metric of the problem, where that is known."""
    return average(rows, ["problem", "method"], "metric").rename(columns={"problem": "panel"})


def task_curves(rows: pd.DataFrame, column: str, panel: str) -> pd.DataFrame:
    """Means over the seeds of each problem, then over problems, for the n that all of these have.

    Standard errors are over problems, or over seeds if there is but one.
    """
    tasks = rows["problem"].nunique()
    if tasks > 1:
        rows, column = average(rows, ["method", "problem"], column), "mean"
    found = average(rows, ["method"], column).assign(panel=panel)[list(NO_CURVES)]
    return found if tasks == 1 else found[found["samples"] == tasks]


def joined(curves: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Curves and those published (with default weights) of the same panels, panel by panel."""
    panels = {panel: place for place, panel in enumerate(dict.fromkeys(curves["panel"]))}
    shown = published[published["panel"].isin(panels)]
    both = pd.concat([curves, shown], ignore_index=True)
    return both.sort_values("panel", key=lambda names: names.map(panels), kind="stable")


def of_methods(curves: pd.DataFrame, chosen: Callable[[str], bool]) -> pd.DataFrame:
    """The curves of the methods that are chosen by name."""
    return curves[np.array([chosen(name) for name in curves["method"]], dtype=bool)]
