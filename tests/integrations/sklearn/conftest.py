import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained

pytest.importorskip("sklearn")


@pytest.fixture(scope="session")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))
