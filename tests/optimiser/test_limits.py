import pytest
import torch

from amortes.acquisition import Fitted
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import AmortesWarning, Float, Optimizer, minimize
from amortes.optimiser.limits import _noise, departures
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


def test_a_network_that_cannot_tell_noise_has_nothing_else_left_where_it_has_seen(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None]
    noise = torch.randn(40, generator=generator(2), dtype=torch.float64)
    y = 500.0 + 30.0 * (X[:, 0] + 0.5 * noise)
    fitted = Fitted(network, X, y)
    known = fitted.noise_share
    monkeypatch.setattr(network, "noise_sd", lambda state: None)
    assert fitted.noise_share is None
    assert _noise(fitted) == pytest.approx(known, rel=0.15)


def test_penalties_that_dwarf_the_rest(network: KernelNetwork) -> None:
    X = torch.rand(12, 2, generator=generator(1), dtype=torch.float64)
    y = X.sum(1)

    def found(y: torch.Tensor, *, maximise: bool) -> list[str]:
        return [kind for kind, _ in departures(Fitted(network, X, y, maximise=maximise))]

    high = torch.where(torch.arange(12) < 3, 10.0, y)
    assert found(y, maximise=False) == []
    assert found(high, maximise=False) == ["penalties"]
    assert found(high, maximise=True) == []  # a few that are much better are what one looks for
    assert found(-high, maximise=True) == ["penalties"]
    assert found(torch.where(torch.arange(12) < 2, 10.0, y), maximise=False) == []
    assert found(torch.where(torch.arange(12) < 3, 3.0, y), maximise=False) == []
    assert found(torch.ones(12, dtype=torch.float64), maximise=False) == []
    assert found((y > y.median()).double(), maximise=True) == []  # passed or not
    message = dict(departures(Fitted(network, X, high, maximise=False)))["penalties"]
    assert "3 of 12 results" in message


def test_values_that_count_as_equal_are_said(network: KernelNetwork) -> None:
    X = torch.rand(5, 2, generator=generator(1), dtype=torch.float64)
    found = dict(departures(Fitted(network, X, 1e6 + 1e-9 * X[:, 0])))
    assert list(found) == ["spread"]
    assert "1e-13 of their size" in found["spread"]
    assert dict(departures(Fitted(network, X, torch.ones(5, dtype=torch.float64)))) == {}
    assert dict(departures(Fitted(network, X, 1e6 + X[:, 0]))) == {}


def test_warnings_point_at_the_users_line(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    with pytest.warns(
        AmortesWarning, match=r"1e\+101 counts as failed, because values beyond 1e\+100"
    ) as caught:
        opt.tell({"x": 0.5}, 1e101)
    assert caught[0].filename == __file__
    with pytest.warns(AmortesWarning, match="the function raised ZeroDivisionError") as caught:
        minimize(lambda config: 1 / int(config["x"] > 0.3), opt.space, 4, network=network)
    assert caught[0].filename == __file__
