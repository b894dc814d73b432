"""amortes inside scikit-learn: a search over hyperparameters with cross-validation.

    search = AmortesSearchCV(model, {"C": Float(1e-3, 1e3, log=True)}, n_iter=30, cv=5)
    search.fit(X, y).best_params_

Needs scikit-learn: `pip install amortes[sklearn]`.
"""

from amortes.errors import needs_extra

with needs_extra("sklearn", "amortes.integrations.sklearn needs scikit-learn"):
    import sklearn  # noqa: F401

from amortes.integrations.sklearn.search import AmortesSearchCV

__all__ = ["AmortesSearchCV"]
