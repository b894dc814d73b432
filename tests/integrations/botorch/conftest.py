import pytest
import torch
from torch import Tensor

from amortes.nets.kernel import KernelNetwork
from amortes.random import generator
from tests.acquisition.conftest import network

pytest.importorskip("botorch")

from amortes.integrations.botorch import Surrogate

__all__ = ["network"]

BOUNDS = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)


def raw(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points in the bounds and values of a hill with its top at (4, 9) and height 300."""
    u = torch.rand(n, 2, generator=generator(seed), dtype=torch.float64)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * u
    top = torch.tensor([4.0, 9.0], dtype=torch.float64)
    return X, 300.0 - (X - top).square().sum(-1, keepdim=True)


@pytest.fixture
def model(network: KernelNetwork) -> Surrogate:
    """Ten points in the bounds."""
    return Surrogate(*raw(10), network=network, bounds=BOUNDS)
