from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from amortes.integrations.sklearn.failures import FailedBatches

X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
BAD = -1.0  # alpha must not be negative


class OneByOne(GridSearchCV):  # type: ignore[misc]
    """A grid search that evaluates its candidates one after the other."""

    def _run_search(self, evaluate_candidates: Any) -> None:
        failures = FailedBatches(evaluate_candidates, self.error_score)
        for table in self.param_grid if isinstance(self.param_grid, list) else [self.param_grid]:
            for alpha in table["alpha"]:
                failures.evaluate([{k: v[0] for k, v in table.items()} | {"alpha": alpha}])
        failures.complete()


@pytest.mark.parametrize("score", [np.nan, -1e9])
@pytest.mark.parametrize("alphas", [[BAD, 1.0, 2.0], [1.0, BAD, BAD, 2.0], [3.0, 1.0, BAD]])
@pytest.mark.filterwarnings("ignore::UserWarning")  # scores that are not finite
def test_results_are_those_of_all_at_once(alphas: list[float], score: float) -> None:
    settings: dict[str, Any] = {"cv": 3, "error_score": score, "return_train_score": True}
    grid = {"alpha": alphas, "fit_intercept": [True]}
    with pytest.warns(FitFailedWarning):
        expected = GridSearchCV(Ridge(), grid, **settings).fit(X, y)
    with pytest.warns(FitFailedWarning):
        found = OneByOne(Ridge(), grid, **settings).fit(X, y)
    assert found.best_params_ == expected.best_params_
    assert set(found.cv_results_) == set(expected.cv_results_)
    for key, column in expected.cv_results_.items():
        if key.endswith("_time"):
            continue
        if key == "params":
            assert found.cv_results_[key] == column
        else:
            np.testing.assert_array_equal(found.cv_results_[key].tolist(), column.tolist(), key)


def test_parameters_only_some_candidates_have() -> None:
    grid = [{"alpha": [1.0]}, {"alpha": [BAD], "tol": [0.1]}]
    with pytest.warns(FitFailedWarning):
        found = OneByOne(Ridge(), grid, cv=3).fit(X, y)
    assert found.cv_results_["param_tol"].tolist() == [None, 0.1]
    assert found.cv_results_["param_tol"].mask.tolist() == [True, False]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_where_all_fail_so_does_the_search() -> None:
    few = OneByOne(Ridge(), {"alpha": [BAD, BAD]}, cv=3)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        few.fit(X, y)
    evaluated = []

    def evaluate(candidates: Any) -> Any:
        evaluated.append(candidates)
        raise ValueError("All the 3 fits failed.\n...")

    def run() -> None:
        failures = FailedBatches(evaluate, np.nan)
        for _ in range(99):
            failures.evaluate([{"alpha": BAD}])

    with pytest.raises(ValueError, match="All the 3 fits"):
        run()
    assert len(evaluated) == 10


def test_other_errors_are_not_caught() -> None:
    def evaluate(candidates: Any) -> Any:
        raise ValueError("cv is wrong")

    with pytest.raises(ValueError, match="cv is wrong"):
        FailedBatches(evaluate, np.nan).evaluate([{}])
