import pytest
import torch
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import PRIORS
from amortes.random import generator


@pytest.fixture(scope="session")
def network() -> KernelNetwork:
    """A kernel network of which nothing is learned."""
    return KernelNetwork(KernelConfig(encoder=None), PRIORS["robust"]).eval()


def data(d: int, n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noisy values, in arbitrary units, of a function with its maximum inside the cube."""
    rng = generator(seed, d, n)
    X = torch.rand(n, d, generator=rng, dtype=torch.float64)
    noise = torch.randn(n, generator=rng, dtype=torch.float64)
    hill = -4.0 * (X - 0.6).square().sum(-1) + 0.3 * (9.0 * X[:, 0]).sin()
    return X, 50.0 + 20.0 * (hill + 0.1 * noise)


@pytest.fixture
def fitted(network: KernelNetwork) -> Fitted:
    """Ten points in two dimensions, maximised."""
    return Fitted(network, *data(2, 10))
