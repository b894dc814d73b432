from collections.abc import Callable
from typing import Any

import pytest

from amortes.nets.kernel import KernelNetwork
from tests.optimiser.conftest import network

pytest.importorskip("optuna")

import optuna

from amortes.integrations.optuna import AmortesSampler

__all__ = ["network"]

Make = Callable[..., AmortesSampler]


@pytest.fixture
def make(network: KernelNetwork) -> Make:
    """Samplers with a small network and the cheapest acquisition."""

    def sampler(**changes: Any) -> AmortesSampler:
        settings: dict[str, Any] = {"acquisition": "logei", "seed": 0, "network": network}
        return AmortesSampler(**(settings | changes))

    return sampler


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
