"""Tune a scikit-learn model with mixed parameters on real data.

`python examples/sklearn_tuning.py`: gradient boosting on the diabetes data of Efron et al. (2004),
442 patients, which come with scikit-learn. Real, logarithmic, integer and categorical parameters,
and a linear constraint between two of them.
"""

import sys
from typing import Any

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_score

from amortes import Categorical, Float, Int, Linear, Space, minimize

X, y = load_diabetes(return_X_y=True)

SPACE = Space(
    {
        "learning_rate": Float(0.005, 0.5, log=True),
        "n_estimators": Int(10, 150),
        "max_depth": Int(1, 8),
        "min_samples_leaf": Int(1, 40),
        "subsample": Float(0.3, 1.0),
        "loss": Categorical(["squared_error", "absolute_error", "huber"]),
        "random_state": 0,
    },
    # Trees in all times depth is what costs time: keep it in bounds.
    constraints=[Linear({"n_estimators": 1.0, "max_depth": 20.0}, upper=200.0)],
)


def error(config: dict[str, Any]) -> float:
    """Root mean squared error in five-fold cross-validation."""
    model = GradientBoostingRegressor(**config)
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, y, cv=folds, scoring="neg_root_mean_squared_error")
    return -float(scores.mean())


def main(n_trials: int = 30) -> None:
    """Tune, and print what was found and what mattered."""
    result = minimize(error, SPACE, n_trials=n_trials, seed=0)
    print(f"default settings: {error({'random_state': 0}):.2f}")
    print(f"best of {result.n_trials}: {result.fun:.2f} with {result.x}")
    recommended = result.optimizer.recommend()
    print(f"recommended: {recommended.median:.2f} expected with {recommended.config}")
    for name, share in result.optimizer.importance().items():
        print(f"  {name:18} {share:4.0%} of the variation")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
