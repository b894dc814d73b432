import pytest
import torch

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.particles import ParticleConfig
from amortes.prior.gp import GPPrior, named_prior


def untrained(prior: GPPrior) -> KernelNetwork:
    """Without training its predictions are those of the fully Bayesian Gaussian process."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = KernelConfig(particles=ParticleConfig(count=6))
        network = KernelNetwork(config, prior)
    return network.to(network.inference_dtype).requires_grad_(False).eval()


@pytest.fixture(scope="session")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))
