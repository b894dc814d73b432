"""Real problems that run anywhere: scikit-learn models on the data sets that come with it.

Numbers, integers and choices are placed in the unit cube by `amortes.optimiser.Space`; any point
of the cube stands for the configuration whose region holds it, so the functions have steps. The
value is a cross-validated score: the same folds and seeds for all, so the same configuration always
has the same score.

    sklearn-svm-digits         accuracy     kernel, C, gamma, degree, coef0
    sklearn-mlp-wine           -log loss    activation, width, depth, alpha, learning rate, epochs
    sklearn-forest-diabetes    R^2          depth, leaf, features, trees, criterion, bootstrap
    sklearn-svm-cancer         -log loss    C, gamma
    sklearn-svr-diabetes       R^2          C, gamma, epsilon
    sklearn-logistic-wine      -log loss    alpha, share of L1, learning rate, epochs
    sklearn-boosting-diabetes  R^2          rate, trees, depth, leaf, subsample, features
    sklearn-mlp-cancer         -log loss    width, alpha, learning rate, momentum, epochs

A score takes 0.01 to 1 second. Each problem remembers the scores it has computed.
"""

import importlib
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from amortes.bench.protocol import Kind, Problem
from amortes.errors import needs_extra
from amortes.optimiser import Categorical, Float, Int, Space

FOLDS = 3


@dataclass(frozen=True)
class Tuning:
    """A model to tune: its class in scikit-learn, the parameters that vary, data and score."""

    model: str
    parameters: dict[str, Any]
    data: str  # sklearn.datasets.load_<data>
    scoring: str
    fixed: dict[str, Any] = field(default_factory=dict)  # other parameters
    calibrated: bool = False  # by cross-validation, for probabilities
    every: int = 1  # use each so-manieth row only, to be quick

    @cached_property
    def space(self) -> Space:
        """Where configurations are in the unit cube."""
        return Space(self.parameters)

    def estimator(self, config: dict[str, Any]) -> Any:
        """The model of a configuration; layers of a network are given by width and depth."""
        from sklearn.calibration import CalibratedClassifierCV

        module, _, name = self.model.rpartition(".")
        chosen = self.fixed | config
        if "width" in chosen:
            chosen["hidden_layer_sizes"] = (chosen.pop("width"),) * chosen.pop("depth", 1)
        model = getattr(importlib.import_module(f"sklearn.{module}"), name)(**chosen)
        return CalibratedClassifierCV(model, ensemble=False, cv=3) if self.calibrated else model


LOGISTIC = {"loss": "log_loss", "penalty": "elasticnet", "learning_rate": "adaptive"}
TUNINGS: dict[str, Tuning] = {
    "sklearn-svm-digits": Tuning(
        "svm.SVC",
        {
            "kernel": Categorical(["rbf", "poly", "sigmoid"]),
            "C": Float(1e-2, 1e3, log=True),
            "gamma": Float(1e-5, 1e0, log=True),
            "degree": Int(2, 5),
            "coef0": Float(0.0, 2.0),
        },
        data="digits",
        scoring="accuracy",
        every=2,
    ),
    "sklearn-mlp-wine": Tuning(
        "neural_network.MLPClassifier",
        {
            "activation": Categorical(["relu", "tanh"]),
            "width": Int(2, 64, log=True),
            "depth": Int(1, 3),
            "alpha": Float(1e-6, 1e1, log=True),
            "learning_rate_init": Float(1e-4, 1e-1, log=True),
            "max_iter": Int(5, 100, log=True),
        },
        data="wine",
        scoring="neg_log_loss",
        fixed={"random_state": 0},
    ),
    "sklearn-forest-diabetes": Tuning(
        "ensemble.RandomForestRegressor",
        {
            "max_depth": Int(1, 20),
            "min_samples_leaf": Int(1, 64, log=True),
            "max_features": Float(0.1, 1.0),
            "n_estimators": Int(5, 60, log=True),
            "criterion": Categorical(["squared_error", "poisson"]),
            "bootstrap": Categorical([False, True]),
        },
        data="diabetes",
        scoring="r2",
        fixed={"random_state": 0},
    ),
    "sklearn-svm-cancer": Tuning(
        "svm.SVC",
        {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-5, 1e1, log=True)},
        data="breast_cancer",
        scoring="neg_log_loss",
        calibrated=True,
    ),
    "sklearn-svr-diabetes": Tuning(
        "svm.SVR",
        {
            "C": Float(1e-1, 1e4, log=True),
            "gamma": Float(1e-5, 1e1, log=True),
            "epsilon": Float(1e-1, 1e2, log=True),
        },
        data="diabetes",
        scoring="r2",
    ),
    "sklearn-logistic-wine": Tuning(
        "linear_model.SGDClassifier",
        {
            "alpha": Float(1e-6, 1e1, log=True),
            "l1_ratio": Float(0.0, 1.0),
            "eta0": Float(1e-4, 1e1, log=True),
            "max_iter": Int(5, 200, log=True),
        },
        data="wine",
        scoring="neg_log_loss",
        fixed={**LOGISTIC, "random_state": 0},
    ),
    "sklearn-boosting-diabetes": Tuning(
        "ensemble.GradientBoostingRegressor",
        {
            "learning_rate": Float(1e-2, 1.0, log=True),
            "n_estimators": Int(5, 100, log=True),
            "max_depth": Int(1, 8),
            "min_samples_leaf": Int(1, 64, log=True),
            "subsample": Float(0.2, 1.0),
            "max_features": Float(0.1, 1.0),
        },
        data="diabetes",
        scoring="r2",
        fixed={"random_state": 0},
    ),
    "sklearn-mlp-cancer": Tuning(
        "neural_network.MLPClassifier",
        {
            "width": Int(2, 64, log=True),
            "alpha": Float(1e-6, 1e1, log=True),
            "learning_rate_init": Float(1e-4, 1.0, log=True),
            "momentum": Float(0.0, 0.99),
            "max_iter": Int(2, 50, log=True),
        },
        data="breast_cancer",
        scoring="neg_log_loss",
        fixed={"solver": "sgd", "random_state": 0},
    ),
}


class ModelTuning(Problem):
    """The cross-validated score of a scikit-learn model; by name, see `TUNINGS`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tuning = TUNINGS[name]
        self.d = self.tuning.space.d
        with needs_extra("bench", "The sklearn problems need scikit-learn"):
            import sklearn.datasets
        arrays = getattr(sklearn.datasets, f"load_{self.tuning.data}")(return_X_y=True)
        self._X, self._y = (array[:: self.tuning.every] for array in arrays)
        self._known: dict[tuple[float, ...], float] = {}

    def value(self, X: Tensor) -> Tensor:
        """Scores of the configurations at X, `m x d`: `m`."""
        points = self.tuning.space.project(X)
        return torch.tensor([self._score(x) for x in points], dtype=torch.float64)

    def _score(self, x: Tensor) -> float:
        key = tuple(x.tolist())
        if key not in self._known:
            self._known[key] = self._cross_validate(self.tuning.space.decode(x))
        return self._known[key]

    def _cross_validate(self, config: dict[str, Any]) -> float:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = make_pipeline(StandardScaler(), self.tuning.estimator(config))
        kind = KFold if self.tuning.scoring == "r2" else StratifiedKFold
        folds = kind(FOLDS, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            # The number of epochs is one of the parameters: few is a choice.
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = cross_val_score(
                model, self._X, self._y, cv=folds, scoring=self.tuning.scoring, error_score="raise"
            )
        return float(scores.mean())


_WORDS = {"svm": "SVM", "svr": "SVR", "mlp": "MLP"}
_SCORES = {"accuracy": "accuracy", "neg_log_loss": "-log loss", "r2": "R²"}


def _label(name: str, tuning: Tuning) -> str:
    _, model, data = name.split("-")
    return f"{_WORDS.get(model, model)} on {data} ({_SCORES[tuning.scoring]})"


KIND = Kind(
    family="sklearn",
    names=tuple(TUNINGS),
    make=ModelTuning,
    iterations=50,
    real=(
        *("sklearn-svm-cancer", "sklearn-svr-diabetes", "sklearn-logistic-wine"),
        *("sklearn-boosting-diabetes", "sklearn-mlp-cancer"),
    ),
    labels={name: _label(name, tuning) for name, tuning in TUNINGS.items()},
)
