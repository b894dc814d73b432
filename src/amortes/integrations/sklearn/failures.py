"""Candidates of which every fit failed.

A search of scikit-learn ends with a ValueError if all fits of one call fail. Where candidates come
one after the other, that would be the first bad one. Here the search goes on; when it is done, such
candidates take their places in `cv_results_`, as in a `RandomizedSearchCV` that evaluates all at
once.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from amortes.optimiser.minimize import HOPELESS

ALL_FAILED = "fits failed.\n"  # in what scikit-learn says then, and in nothing else


class FailedBatches:
    """Evaluates candidates, and remembers those that scikit-learn does not."""

    def __init__(
        self, evaluate_candidates: Callable[[Sequence[Any]], dict[str, Any]], error_score: Any
    ) -> None:
        self._evaluate, self._error_score = evaluate_candidates, error_score
        self._results: dict[str, Any] | None = None  # scikit-learn's own, so far
        self._failed: dict[int, Mapping[str, Any]] = {}  # by place among all candidates
        self._count = 0

    def evaluate(self, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """The results of all candidates so far, these the last; None if all of these failed.

        Raises what scikit-learn does if `HOPELESS` candidates have failed and none has not.
        """
        places = range(self._count, self._count + len(candidates))
        self._count += len(candidates)
        try:
            self._results = self._evaluate(candidates)
        except ValueError as error:
            if self._error_score == "raise" or ALL_FAILED not in str(error):
                raise
            self._failed |= dict(zip(places, candidates, strict=True))
            if self._results is None and len(self._failed) >= HOPELESS:
                raise
            self._last = error
            warnings.warn(str(error), FitFailedWarning, stacklevel=2)
            return None
        return self._results

    def complete(self) -> None:
        """Add the candidates that failed to the results, which are scikit-learn's own."""
        if self._results is None:
            raise self._last
        if self._failed:
            self._results.update(_with(self._results, self._failed, self._error_score))


def _with(
    results: Mapping[str, Any], failed: Mapping[int, Mapping[str, Any]], score: float
) -> dict[str, Any]:
    """The columns of `cv_results_` with rows for candidates that failed, at these places."""
    rows = len(results["params"]) + len(failed)
    known = [i for i in range(rows) if i not in failed]
    params = np.empty(rows, dtype=object)
    params[known] = results["params"]
    for place, candidate in failed.items():
        params[place] = dict(candidate)
    full: dict[str, Any] = {"params": params.tolist()}
    for name in {name: None for candidate in params for name in candidate}:
        column = np.ma.MaskedArray(np.empty(rows, dtype=object), mask=True)
        for i, candidate in enumerate(params):
            if name in candidate:
                column[i] = candidate[name]
        full[f"param_{name}"] = column
    for key, values in results.items():
        if key not in full and not key.startswith("rank_"):
            full[key] = np.full(rows, np.nan if key.endswith("_time") else score)
            full[key][known] = values
            if key.startswith("std_") and not np.isnan(score):
                full[key][list(failed)] = 0.0
    for key in (key for key in results if key.startswith("rank_")):
        means = full[key.replace("rank_", "mean_", 1)]
        means = np.where(np.isnan(means), np.nanmin(means) - 1, means)
        full[key] = rankdata(-means, method="min").astype(np.int32)
    return full
