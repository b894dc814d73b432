import pytest

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@pytest.fixture
def task() -> TaskBatch:
    """Three datasets of seven points in two dimensions."""
    config = TaskConfig(batch_size=3, num_queries=9)
    return TaskStream(PRIORS["robust"], 77, config).batch_of(0, 2, 7)


@pytest.fixture
def warped() -> TaskBatch:
    """The same of a prior with a mixed kernel and warps."""
    config = TaskConfig(batch_size=3, num_queries=9)
    return TaskStream(PRIORS["real"], 77, config).batch_of(0, 2, 7)


@pytest.fixture
def network() -> KernelNetwork:
    """A kernel network of which nothing is learned."""
    return KernelNetwork(KernelConfig(encoder=None), PRIORS["robust"]).eval()
