import pytest
import torch

from amortes.bench.methods.map_gp import MapGP, fit_map, posterior_mean
from amortes.bench.protocol import MethodFactory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct


def factory(acquisition: str) -> MethodFactory:
    return lambda problem, seed: MapGP(problem, seed, acquisition)


@pytest.mark.parametrize("acquisition", ["logei", "gibbon"])
def test_conduct(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2), near=0.1)


def test_conduct_with_noise() -> None:
    check_conduct(factory("lognei"), Quadratic(1, noise_sd=0.1))


def test_conduct_jes() -> None:
    check_conduct(factory("jes"), Quadratic(1), steps=5)


@pytest.mark.parametrize("acquisition", ["logei", "lognei", "gibbon", "jes"])
def test_pool(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2, pool=40), steps=3)


def test_the_mean_is_that_of_the_textbook() -> None:
    rng = generator(0)
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    Xq = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    y = 70.0 + 10.0 * (5.0 * X).sin().sum(-1)
    model = fit_map(X, y, seed=0)
    z = (y - y.mean()) / y.std()
    lengthscale = model.covar_module.lengthscale.detach()
    constant = model.mean_module.constant.detach()

    def kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (-0.5 * torch.cdist(A / lengthscale, B / lengthscale).square()).exp()

    K = kernel(X, X) + model.likelihood.noise.detach() * torch.eye(9, dtype=torch.float64)
    expected = constant + kernel(Xq, X) @ torch.linalg.solve(K, z - constant)
    torch.testing.assert_close(posterior_mean(model)(Xq).detach(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("acquisition", "most"), [("logei", 1024), ("gibbon", 1024), ("jes", 128)])
def test_points_are_scored_in_chunks(
    acquisition: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def score(X: torch.Tensor) -> torch.Tensor:
        sizes.append(len(X))
        return X[:, 0, 0]

    method, X = MapGP(Quadratic(2, pool=1100), 0, acquisition), torch.eye(2, dtype=torch.float64)
    monkeypatch.setattr(method, "_acquisition", lambda model, X: score)
    method.search(fit_map(X, X[:, 0], seed=0), X, seed=0)
    assert max(sizes) == most
