import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from amortes.bench.problems.models import TUNINGS, ModelTuning


@pytest.mark.parametrize("name", list(TUNINGS))
def test_scores_are_repeatable_and_depend_on_the_configuration(name: str) -> None:
    problem, again = ModelTuning(name), ModelTuning(name)
    assert problem.best is None
    assert problem.pool is None
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(2, problem.d, dtype=torch.float64, generator=generator)
    values = problem.value(X)
    assert values.dtype == torch.float64
    assert values.isfinite().all()
    assert values[0] != values[1]
    assert again.value(X[1:]) == values[1]


def test_few_epochs_are_a_choice_and_no_warning() -> None:
    problem = ModelTuning("sklearn-mlp-wine")
    X = torch.full((1, problem.d), 0.5, dtype=torch.float64)
    X[0, -1] = 0.0
    assert problem.tuning.space.decode(X[0])["max_iter"] == 5
    assert problem.value(X).isfinite().all()


def test_the_score_is_that_of_scikit_learn_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ModelTuning("sklearn-mlp-wine")
    config = {
        "activation": "tanh",
        "width": 8,
        "depth": 2,
        "alpha": 1e-2,
        "learning_rate_init": 3e-2,
        "max_iter": 60,
    }
    x = problem.tuning.space.encode(config)
    model = MLPClassifier(
        hidden_layer_sizes=(8, 8),
        activation="tanh",
        alpha=1e-2,
        learning_rate_init=3e-2,
        max_iter=60,
        random_state=0,
    )
    expected = cross_val_score(
        make_pipeline(StandardScaler(), model),
        *load_wine(return_X_y=True),
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        scoring="neg_log_loss",
    ).mean()
    assert float(problem.value(x[None])) == pytest.approx(expected, rel=1e-6)
    # Another point of the same configuration needs no training.
    monkeypatch.setattr(problem, "_cross_validate", None)
    nearby = x.clone()
    nearby[0] = 0.9  # still tanh
    assert problem.value(torch.stack([x, nearby])).tolist() == [float(problem.value(x[None]))] * 2
