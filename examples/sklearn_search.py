"""A drop-in for scikit-learn's RandomizedSearchCV.

`python examples/sklearn_search.py`: a support vector machine on the breast cancer data that come
with scikit-learn. A linear kernel has a C; the others also have a gamma.
"""

import sys

from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from amortes import Float
from amortes.integrations.sklearn import AmortesSearchCV

DISTRIBUTIONS = [
    {"svc__kernel": ["linear"], "svc__C": loguniform(1e-3, 1e3)},
    {
        "svc__kernel": ["rbf", "sigmoid"],
        "svc__C": loguniform(1e-3, 1e3),  # of SciPy, or of amortes
        "svc__gamma": Float(1e-4, 1e1, log=True),
    },
]


def main(n_iter: int = 25) -> None:
    """Search, and print what was found."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    search = AmortesSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        DISTRIBUTIONS,
        n_iter=n_iter,
        scoring="roc_auc",
        cv=5,
        random_state=0,
    )
    search.fit(X_train, y_train)
    found = {name.removeprefix("svc__"): value for name, value in search.best_params_.items()}
    print(f"best of {n_iter} candidates: {search.best_score_:.4f} with {found}")
    print(f"on test data: {search.score(X_test, y_test):.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
