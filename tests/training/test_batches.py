import torch

from amortes.prior.tasks import TaskBatch
from amortes.training.batches import place, query_mean, take_rows


def test_rows_of_every_tensor_are_taken(task: TaskBatch) -> None:
    part = take_rows(task, slice(1, 3))
    assert torch.equal(part.X, task.X[1:3])
    assert torch.equal(part.near_optimum, task.near_optimum[1:3])
    assert torch.equal(part.optimum.f, task.optimum.f[1:3])
    assert torch.equal(part.hyper.lengthscale, task.hyper.lengthscale[1:3])
    assert torch.equal(part.noise_variance, task.noise_variance[1:3])


def test_place_casts_numbers_but_not_flags_and_hyperparameters(task: TaskBatch) -> None:
    placed = place(task, torch.device("cpu"), torch.float32)
    assert placed.X.dtype == placed.fq.dtype == placed.optimum.x.dtype == torch.float32
    assert placed.near_optimum.dtype == torch.bool
    assert placed.hyper.noise_sd.dtype == torch.float64
    assert torch.equal(placed.X, task.X.float())


def test_queries_that_do_not_count_are_left_out() -> None:
    values = torch.tensor([[1.0, 2.0, torch.nan], [5.0, torch.inf, 7.0], [1.0, 1.0, 1.0]])
    counts = torch.tensor([[True, True, False], [False, False, True], [False, False, False]])
    assert query_mean(values, counts).tolist() == [1.5, 7.0, 0.0]
