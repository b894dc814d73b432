import pytest
import torch

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@pytest.fixture
def task() -> TaskBatch:
    """Three datasets of seven points in two dimensions."""
    config = TaskConfig(batch_size=3, num_queries=9)
    return TaskStream(PRIORS["robust"], 77, config).batch_of(0, 2, 7)


@pytest.fixture
def network() -> KernelNetwork:
    """An untrained kernel network with repeatable weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return KernelNetwork(KernelConfig(), PRIORS["robust"]).eval()
