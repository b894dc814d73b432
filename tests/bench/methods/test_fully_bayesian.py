import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    qLowerBoundMaxValueEntropy,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from torch import Tensor

from amortes.bench.methods import paper_gp
from amortes.bench.methods.fully_bayesian import EnsembleGibbon, EnsemblePES, FullyBayesian
from amortes.bench.methods.map_gp import optima, seeded
from amortes.bench.methods.paper_gp import FORGET_EVERY
from amortes.bench.protocol import MethodFactory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct, run
from tests.bench.methods.ensemble import MEMBERS, made_up

model, members = made_up()
rng = generator(1)
X = torch.rand(7, 1, 2, generator=rng, dtype=torch.float64)
POINTS = torch.rand(50, 2, generator=rng, dtype=torch.float64)
with seeded(0):
    # Not just any points: expectation propagation breaks down on optima the data speak against.
    X_STAR, F_STAR = optima(model, 2, None, 3)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


def each(make: Callable[[Any, int], Any]) -> Tensor:
    """Values of the members' acquisitions at X, `MEMBERS x 7`."""
    return torch.stack([make(member, j)(X) for j, member in enumerate(members)]).detach()


def assert_same(values: Tensor, expected: Tensor) -> None:
    assert values.shape == (7,)
    assert expected.std() > 1e-3  # there is something to compare
    torch.testing.assert_close(values.detach(), expected, atol=1e-8, rtol=0)


def test_ei() -> None:
    expected = each(lambda member, _: ExpectedImprovement(member, 0.5))
    assert_same(ExpectedImprovement(model, 0.5)(X), expected.mean(0))


def test_logei_is_the_logarithm_of_the_mean() -> None:
    expected = each(lambda member, _: LogExpectedImprovement(member, 0.5))
    assert_same(LogExpectedImprovement(model, 0.5)(X), expected.exp().mean(0).log())


@pytest.mark.parametrize("maxima", [5, MEMBERS])
def test_gibbon(maxima: int) -> None:
    gibbon = EnsembleGibbon(model, POINTS, num_mv_samples=maxima)
    assert gibbon.posterior_max_values.shape == (maxima, MEMBERS)

    def one(member: Any, j: int) -> Any:
        acquisition = qLowerBoundMaxValueEntropy(member, POINTS, num_mv_samples=maxima)
        acquisition.posterior_max_values = gibbon.posterior_max_values[:, j : j + 1]
        return acquisition

    assert_same(gibbon(X), each(one).mean(0))


def test_gibbon_thinks_of_each_members_own_maximum() -> None:
    torch.manual_seed(0)
    ours = EnsembleGibbon(model, POINTS, num_mv_samples=5).posterior_max_values
    for j, member in enumerate(members):
        torch.manual_seed(0)
        own = qLowerBoundMaxValueEntropy(member, POINTS, num_mv_samples=5).posterior_max_values
        torch.testing.assert_close(ours[:, j : j + 1], own, atol=1e-6, rtol=0)


def test_jes() -> None:
    expected = each(lambda member, j: qJointEntropySearch(member, X_STAR[:, j], F_STAR[:, j]))
    assert_same(qJointEntropySearch(model, X_STAR, F_STAR)(X), expected.mean(0))


def test_pes() -> None:
    expected = each(lambda member, j: qPredictiveEntropySearch(member, X_STAR[:, j]))
    assert_same(EnsemblePES(model, X_STAR)(X), expected.mean(0))


def test_pes_when_an_optimum_is_a_training_point() -> None:
    """As it may be in a pool: the covariance of the points is then singular."""
    train = model.train_inputs[0]
    best = train[model.train_targets.argmax()].expand(2, MEMBERS, 2)
    expected = each(lambda member, j: qPredictiveEntropySearch(member, best[:, j]))
    torch.testing.assert_close(EnsemblePES(model, best)(X), expected.mean(0), atol=1e-8, rtol=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EnsembleGibbon(model, POINTS),
        lambda: qJointEntropySearch(model, X_STAR, F_STAR),
        lambda: EnsemblePES(model, X_STAR),
    ],
)
def test_gradients(make: Callable[[], Any]) -> None:
    acquisition, step = make(), 1e-5
    point = X[:1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(acquisition(point).sum(), point)
    with torch.no_grad():
        for k in range(2):
            ahead, behind = X[:1].clone(), X[:1].clone()
            ahead[..., k] += step
            behind[..., k] -= step
            slope = (acquisition(ahead) - acquisition(behind)) / (2 * step)
            torch.testing.assert_close(gradient[0, 0, k], slope[0], atol=1e-4, rtol=1e-4)


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
