import torch

from amortes.prior.tasks import TaskBatch
from tests.nets.kernel.test_peak import conditioned_on, rivals


def test_some_of_the_rivals(task: TaskBatch) -> None:
    among = rivals(conditioned_on(task), task.X)
    index = torch.tensor([[4, 0, 5]] * 3)
    few = among.take(index)
    assert torch.equal(few.X, among.X[:, [4, 0, 5]])
    assert torch.equal(few.covariance, among.covariance[:, :, [4, 0, 5]][..., [4, 0, 5]])
    assert torch.equal(few.moments.V, among.moments.V[:, :, [4, 0, 5]])
    assert torch.equal(few.moments.whitened, among.moments.whitened[..., [4, 0, 5]])
