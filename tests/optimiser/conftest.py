import pytest

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.prior.gp import GPPrior, named_prior


def untrained(prior: GPPrior) -> KernelNetwork:
    """A small network of which nothing is learned: a Gaussian process with few particles."""
    config = KernelConfig(particles=ParticleConfig(count=6), encoder=None)
    return KernelNetwork(config, prior).eval()


@pytest.fixture(scope="session")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))
