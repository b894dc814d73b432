import torch

from amortes.acquisition import Fitted
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser.limits import departures
from amortes.prior.gp import named_prior
from amortes.random import generator
from tests.optimiser.conftest import untrained


def kinds(network: KernelNetwork, n: int, d: int, noise: float) -> dict[str, str]:
    rng = generator(n, d)
    X = torch.rand(n, d, generator=rng, dtype=torch.float64)
    y = X.sum(1) + noise * torch.randn(n, generator=rng, dtype=torch.float64)
    return dict(departures(Fitted(network, X, y)))


def test_ordinary_data_are_no_departure(network: KernelNetwork) -> None:
    assert kinds(network, 20, 3, 0.05) == {}
    assert kinds(untrained(named_prior("paper")), 20, 3, 0.0) == {}


def test_dimension(network: KernelNetwork) -> None:
    found = kinds(network, 3, 17, 0.0)
    assert list(found) == ["dimension"]
    assert "17 coordinates" in found["dimension"]
    assert "1 to 16" in found["dimension"]


def test_number_of_points() -> None:
    network = untrained(named_prior("robust"))
    assert list(kinds(network, 41, 1, 0.1)) == []
    network.trained_points = 40
    assert list(kinds(network, 40, 1, 0.1)) == []
    assert list(kinds(network, 41, 1, 0.1)) == ["points"]


def test_noise_beyond_a_prior_of_little_noise(network: KernelNetwork) -> None:
    found = kinds(untrained(named_prior("paper")), 40, 2, 5.0)
    assert list(found) == ["noise"]
    assert kinds(network, 40, 2, 5.0) == {}
