import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from amortes.errors import ConfigError
from amortes.integrations.sklearn import AmortesSearchCV
from amortes.integrations.sklearn.search import FailedBatches
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Int, Linear, Optimizer, Space

X, y = load_diabetes(return_X_y=True)
FOLDS = KFold(3, shuffle=True, random_state=0)
C = Float(1e-3, 1e3, log=True)


class Hill(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Whose score does not depend on the data: highest at x = 0.3, n = 7."""

    def __init__(self, x: float = 0.0, n: int = 1, fails_above: float = 2.0) -> None:
        self.x, self.n, self.fails_above = x, n, fails_above

    def fit(self, X: Any, y: Any) -> "Hill":
        if self.x > self.fails_above:
            raise ValueError("too high")
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def score(self, X: Any, y: Any) -> float:
        return -((self.x - 0.3) ** 2) - 0.01 * (self.n - 7) ** 2


def search(network: KernelNetwork, *args: Any, **settings: Any) -> AmortesSearchCV:
    return AmortesSearchCV(
        *args, **{"network": network, "cv": FOLDS, "random_state": 0, "n_iter": 4} | settings
    )


# The first fails for every search of scikit-learn, too.
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        AmortesSearchCV(Ridge(), {"alpha": Float(0.1, 1)}, n_iter=2, cv=2, random_state=0),
        AmortesSearchCV(LogisticRegression(), {"C": [0.1, 1]}, n_iter=2, cv=2, random_state=0),
    ],
    expected_failed_checks=lambda search: (
        {"check_supervised_y_2d": "a warning of the estimator is expected of the search"}
        if isinstance(search.estimator, Ridge)
        else {}
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_conformance(estimator: Any, check: Any) -> None:
    check(estimator)


def test_results_are_those_of_scikit_learn(network: KernelNetwork) -> None:
    settings = {"n_iter": 3, "cv": FOLDS, "random_state": 0, "return_train_score": True}
    distributions = {"alpha": stats.loguniform(1e-3, 1e3), "fit_intercept": [True, False]}
    ours = search(network, Ridge(), distributions, **settings).fit(X, y)
    theirs = RandomizedSearchCV(Ridge(), distributions, **settings).fit(X, y)
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(cross_val_score(Ridge(**params), X, y, cv=FOLDS).mean())
    assert ours.best_score_ == max(ours.cv_results_["mean_test_score"])
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
    best = Ridge(**ours.best_params_).fit(X, y)
    assert np.allclose(ours.predict(X), best.predict(X))
    assert ours.n_features_in_ == 10


def test_it_learns(network: KernelNetwork) -> None:
    space = {"x": stats.uniform(0, 1), "n": stats.randint(1, 11)}
    found = search(network, Hill(), space, n_iter=14).fit(X, y)
    assert found.best_score_ > -0.002
    assert found.optimizer_.recommend().config["n"] == 7
    assert all(trial.status == "done" for trial in found.optimizer_.trials)


def test_the_same_seed_gives_the_same_candidates(network: KernelNetwork) -> None:
    space = {"x": Float(0, 1), "n": Int(1, 10)}
    first = search(network, Hill(), space, n_iter=6)
    again = clone(first)
    other = clone(first).set_params(random_state=1)
    results = [s.fit(X, y).cv_results_["params"] for s in (first, again, other)]
    assert results[0] == results[1] != results[2]


def test_batches_keep_jobs_busy(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    ask = Optimizer.ask

    def counted(self: Optimizer, n: int) -> Any:
        sizes.append(n)
        return ask(self, n)

    monkeypatch.setattr(Optimizer, "ask", counted)
    space = {"x": Float(0, 1)}
    search(network, Hill(), space, n_iter=2).fit(X, y)
    assert sizes == [1, 1]
    sizes.clear()
    with joblib.parallel_config("threading"):  # 3 folds for each candidate
        search(network, Hill(), space, n_iter=5, n_jobs=5).fit(X, y)
    assert sizes == [2, 2, 1]
    sizes.clear()
    search(network, Hill(), space, n_iter=4, batch_size=3).fit(X, y)
    assert sizes == [3, 1]


def test_several_scores(network: KernelNetwork) -> None:
    data = make_classification(60, random_state=0)
    scoring = ["accuracy", "roc_auc"]
    found = search(network, LogisticRegression(), {"C": C}, scoring=scoring, refit="roc_auc")
    found.fit(*data)
    assert found.optimizer_ is not None
    assert found.best_score_ == max(found.cv_results_["mean_test_roc_auc"])
    assert found.optimizer_.best.value == found.best_score_
    with pytest.raises(ConfigError, match=r"refit: .* one of accuracy, roc_auc, not False"):
        clone(found).set_params(refit=False).fit(*data)


def test_a_score_function_that_returns_several(network: KernelNetwork) -> None:
    def scores(model: Any, X: Any, y: Any) -> dict[str, float]:
        return {"a": model.score(X, y), "b": 1.0}

    found = search(network, Hill(), {"x": Float(0, 1)}, scoring=scores, refit="a").fit(X, y)
    assert found.optimizer_.best.value == found.best_score_ == max(found.cv_results_["mean_test_a"])


def test_fits_that_fail(network: KernelNetwork) -> None:
    space = {"x": Float(0, 1)}
    with pytest.warns(FitFailedWarning, match="too high"):
        found = search(network, Hill(fails_above=0.5), space, n_iter=8).fit(X, y)
    trials, results = found.optimizer_.trials, found.cv_results_
    failed = [trial.status == "failed" for trial in trials]
    assert 0 < sum(failed) < 8
    assert np.isnan(results["mean_test_score"]).tolist() == failed
    assert results["params"] == [trial.config for trial in trials]
    assert found.best_params_ == found.optimizer_.best.config
    with pytest.raises(ValueError, match="too high"):
        search(network, Hill(fails_above=-1.0), space, error_score="raise").fit(X, y)


def test_a_pipeline_in_several_branches(network: KernelNetwork) -> None:
    data = make_classification(60, random_state=0)
    pipeline = make_pipeline(StandardScaler(), SVC())
    tables: list[dict[str, Any]] = [
        {"svc__kernel": ["rbf"], "svc__C": C, "svc__gamma": C},
        {"svc": [LogisticRegression()], "svc__C": C},
    ]
    found = search(network, pipeline, tables, n_iter=6).fit(*data)
    kinds = {type(params.get("svc")).__name__ for params in found.cv_results_["params"]}
    assert kinds == {"NoneType", "LogisticRegression"}
    assert found.score(*data) > 0.7


def test_constraints(network: KernelNetwork) -> None:
    space = Space({"x": Float(0, 1), "n": Int(1, 10)}, [Linear({"x": 10, "n": 1}, 5)])
    found = search(network, Hill(), space, n_iter=6).fit(X, y)
    assert all(10 * p["x"] + p["n"] <= 5 + 1e-6 for p in found.cv_results_["params"])


def test_spaces_with_few_candidates(network: KernelNetwork) -> None:
    with pytest.warns(UserWarning, match="has only 3 candidates, fewer than n_iter=9"):
        found = search(network, Hill(), {"n": [3, 7, 5]}, n_iter=9).fit(X, y)
    assert sorted(params["n"] for params in found.cv_results_["params"]) == [3, 5, 7]
    alone = search(network, Hill(), {"n": [3]}).fit(X, y)
    assert alone.cv_results_["params"] == [{"n": 3}]
    assert alone.optimizer_ is None


def test_a_search_can_be_kept(network: KernelNetwork) -> None:
    found = search(network, Hill(), {"x": Float(0, 1)}).fit(X, y)
    kept = pickle.loads(pickle.dumps(found))
    assert kept.best_params_ == found.best_params_
    assert kept.optimizer_.recommend() == found.optimizer_.recommend()


X20, Y20 = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
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
        expected = GridSearchCV(Ridge(), grid, **settings).fit(X20, Y20)
    with pytest.warns(FitFailedWarning):
        found = OneByOne(Ridge(), grid, **settings).fit(X20, Y20)
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
        found = OneByOne(Ridge(), grid, cv=3).fit(X20, Y20)
    assert found.cv_results_["param_tol"].tolist() == [None, 0.1]
    assert found.cv_results_["param_tol"].mask.tolist() == [True, False]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_where_all_fail_so_does_the_search() -> None:
    few = OneByOne(Ridge(), {"alpha": [BAD, BAD]}, cv=3)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        few.fit(X20, Y20)
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
