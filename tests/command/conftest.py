import pytest

import amortes.pretrained
from amortes.nets.kernel import KernelNetwork
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained


@pytest.fixture(scope="session")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


@pytest.fixture
def as_default(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small network instead of the one that comes with amortes."""
    monkeypatch.setattr(amortes.pretrained, "load_pretrained", lambda name=None: (network, None))
