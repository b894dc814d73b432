import pytest

from amortes.bench.methods.ours import Ours
from amortes.bench.methods.registry import OURS
from amortes.bench.protocol import MethodFactory
from amortes.nets.kernel import KernelNetwork
from amortes.prior.gp import named_prior
from tests.bench.methods.conduct import Quadratic, check_conduct
from tests.optimiser.conftest import untrained


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def factory(network: KernelNetwork, score: str) -> MethodFactory:
    return lambda problem, seed: Ours(problem, seed, network, score)


@pytest.mark.parametrize("score", OURS)
def test_conduct(network: KernelNetwork, score: str) -> None:
    # Gains of an untrained network say little about where the optimum is.
    near = 0.05 if score in ("ei", "logei") else 0.4
    check_conduct(factory(network, score), Quadratic(2), near=near)


@pytest.mark.parametrize("score", ["jes", "logei"])
def test_pool(network: KernelNetwork, score: str) -> None:
    check_conduct(factory(network, score), Quadratic(2, pool=40), steps=4)
