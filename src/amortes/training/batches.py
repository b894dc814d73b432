"""Batches of tasks: moved, cast, cut into the shares of ranks, and averaged over queries."""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from amortes.prior.tasks import TaskBatch

T = TypeVar("T")


def place(task: TaskBatch, device: torch.device, dtype: torch.dtype) -> TaskBatch:
    """The batch on a device, in the given type; hyperparameters stay float64 (no network input)."""

    def move(t: Tensor) -> Tensor:
        return t.to(device, dtype if t.is_floating_point() else t.dtype)

    hyper = map_tensors(task.hyper, lambda t: t.to(device))
    return dataclasses.replace(map_tensors(task, move), hyper=hyper)


def take_rows(task: TaskBatch, rows: slice) -> TaskBatch:
    """Some of the b datasets of a batch."""
    return map_tensors(task, lambda t: t[rows])


def query_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Mean of `b x q` over the queries that count, bool of the same shape: `b`."""
    return torch.where(counts, values, 0.0).sum(1) / counts.sum(1).clamp_min(1)


def map_tensors(value: T, function: Callable[[Tensor], Tensor]) -> T:
    """Apply a function to every tensor of a dataclass, also of those inside it."""
    changes = {}
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if item is not None:
            item = function(item) if isinstance(item, Tensor) else map_tensors(item, function)
        changes[field.name] = item
    return type(value)(**changes)
