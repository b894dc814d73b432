import jax
import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.bench.methods import paper_gp
from amortes.bench.methods.fully_bayesian import FullyBayesian
from amortes.bench.methods.jax_setup import FORGET_EVERY
from amortes.bench.protocol import MethodFactory
from tests.bench.methods.conduct import Quadratic, check_conduct, run
from tests.bench.methods.ensemble import made_up


def factory(acquisition: str) -> MethodFactory:
    return lambda problem, seed: FullyBayesian(problem, seed, acquisition)


def test_conduct_logei() -> None:
    """Compiles NUTS once, for all numbers of points from 1 to 6."""
    check_conduct(factory("logei"), Quadratic(1), steps=5)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["ei", "logei", "mes", "jes", "pes"])
def test_conduct(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2), near=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["logei", "mes", "jes", "pes"])
def test_pool(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2, pool=40), steps=3)


class Chain:
    """Instead of NUTS: the same hyperparameters over and over."""

    def __init__(self, samples: int) -> None:
        self.draws = {
            "lengthscale": np.full((samples, 2), 0.5),
            "noise_sd": np.full(samples, 0.01),
            "mean": np.zeros(samples),
        }

    def run(self, *arguments: object) -> None: ...

    def get_samples(self) -> dict[str, np.ndarray]:
        return self.draws


def test_jax_forgets_once_in_so_many_steps_and_in_no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[None] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(None))
    monkeypatch.setattr(paper_gp, "_chain", Chain)
    problem = Quadratic(2, pool=40)
    method, X = FullyBayesian(problem, 0, "logei"), torch.eye(2, dtype=torch.float64)
    for seed in range(FORGET_EVERY):
        method.fit(X, problem.value(X), seed)
    assert not forgotten
    run(factory("logei"), problem, steps=FORGET_EVERY)
    assert len(forgotten) == 1


def test_points_are_scored_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def score(X: Tensor) -> Tensor:
        sizes.append(len(X))
        return X[:, 0, 0]

    method, (model, _) = FullyBayesian(Quadratic(2, pool=300), 0, "logei"), made_up()
    monkeypatch.setattr(method, "_acquisition", lambda model, X: score)
    method.search(model, torch.eye(2, dtype=torch.float64), seed=0)
    assert max(sizes) == 128
