"""`AmortesSearchCV`: a replacement for `RandomizedSearchCV`.

A search of scikit-learn ends with a ValueError if all fits of one call fail. Where candidates come
one after the other, that would be the first bad one. Here the search goes on; when it is done, such
candidates take their places in `cv_results_`, as in a `RandomizedSearchCV` that evaluates all at
once.
"""

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from amortes.errors import ConfigError, shown
from amortes.integrations.sklearn.translate import Translation
from amortes.optimiser import Optimizer, Space
from amortes.optimiser.minimize import HOPELESS
from amortes.pretrained import AnyNetwork

Results = dict[str, Any]
ALL_FAILED = "fits failed.\n"  # in what scikit-learn says then, and in nothing else


class AmortesSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the parameters of an estimator with the best cross-validated score.

        search = AmortesSearchCV(SVC(), {"C": loguniform(1e-3, 1e3)}, n_iter=30, random_state=0)
        search.fit(X, y)
        search.best_params_, search.best_score_, search.predict(X)

    A drop-in replacement for `sklearn.model_selection.RandomizedSearchCV`, which documents the
    arguments, attributes and methods not described here.

    After `fit`, `optimizer_` is the `amortes.Optimizer` behind the search (None if nothing varied).
    It offers `recommend()`, which is better than `best_params_` if scores are noisy, `importance()`
    and plots. Its configs contain the position of a value in a list instead of the value itself.

    param_distributions: a dict that maps names to `Float`, `Int`, `Ordinal`, `Categorical`, a list
        of values, or `uniform`, `loguniform` or `randint` from scipy.stats; a list of such dicts;
        or a `Space`, which may have constraints.
    n_iter: number of candidates to evaluate.
    batch_size: number of candidates to choose at a time; by default as many as keep all jobs busy.
        The smaller the batch, the more results each choice is based on.
    refit: if there are several scores, the name of the one to maximise.
    error_score: score of a fit that failed. With NaN, the default, the search avoids such
        candidates.
    acquisition, network: as in `amortes.Optimizer`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSearchCV._parameter_constraints,
        "param_distributions": [dict, list, tuple, Space],
        "n_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "batch_size": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "acquisition": [str],
        "network": "no_validation",
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        batch_size: int | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        acquisition: str = "auto",
        network: AnyNetwork | None = None,
    ) -> None:
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.random_state = random_state
        self.acquisition = acquisition
        self.network = network
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def _run_search(self, evaluate_candidates: Callable[[Sequence[Any]], Results]) -> None:
        """Have candidates evaluated, batch after batch, each chosen by the scores so far."""
        translation = Translation.of(self.param_distributions)
        self.optimizer_ = None
        if translation.space is None:
            evaluate_candidates([translation.constants])
            return
        self.optimizer_ = optimizer = Optimizer(
            translation.space,
            "maximize",
            acquisition=self.acquisition,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            network=self.network,
        )
        failures = FailedBatches(evaluate_candidates, self.error_score)
        left = self._count(translation.space)
        size = self.batch_size or -(-effective_n_jobs(self.n_jobs) // self.n_splits_)
        while left > 0:
            trials = optimizer.ask(min(size, left))
            results = failures.evaluate([translation.parameters(t.config) for t in trials])
            scores = [self.error_score] * len(trials)
            if results is not None:
                scores = results[f"mean_test_{self._metric(results)}"][-len(trials) :]
            for trial, score in zip(trials, scores, strict=True):
                optimizer.tell(trial, score)
            left -= len(trials)
        failures.complete()

    def _count(self, space: Space) -> int:
        """How many candidates to evaluate: no more than there are."""
        if space.points is None or len(space.points) >= self.n_iter:
            return int(self.n_iter)
        warnings.warn(
            f"the space has only {len(space.points)} candidates, fewer than n_iter={self.n_iter}. "
            f"All of them are evaluated, which GridSearchCV does as well.",
            UserWarning,
            stacklevel=2,
        )
        return len(space.points)

    def _metric(self, results: Results) -> str:
        """The name of the score to maximise."""
        if "mean_test_score" in results:
            return "score"
        if isinstance(self.refit, str) and f"mean_test_{self.refit}" in results:
            return self.refit
        found = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ConfigError(
            f"refit: must be the name of the score to maximise, one of {', '.join(found)}, not "
            f"{shown(self.refit)}."
        )


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
