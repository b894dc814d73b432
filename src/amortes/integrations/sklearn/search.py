"""`AmortesSearchCV`: a replacement for `RandomizedSearchCV`."""

import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from amortes.errors import ConfigError, shown
from amortes.integrations.sklearn.failures import FailedBatches
from amortes.integrations.sklearn.translate import Translation
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.space import Space
from amortes.pretrained import AnyNetwork

Results = dict[str, Any]


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
