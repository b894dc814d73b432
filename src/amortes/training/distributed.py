"""Several processes, one run: `torchrun --nproc-per-node 2 --no-python -- amortes train ...`.

Every rank holds the whole network and works on its share of the rows of every batch; gradients are
summed, weighted by rows. Since all losses are means over rows, w ranks take the same step as one
process does, up to rounding. That is not always little: if a dataset has several optima it moves
some of those that are drawn near a face of the cube, and with them a few gains.

Batch s of a stream is the same whatever the number of ranks: every rank makes it and takes its
rows. That is a tenth of a step in which an encoder learns; lessons take longer than their steps, so
several ranks do not help there.

Not `DistributedDataParallel`: that weighs ranks, not rows, and wants one `forward` for all losses.

The run folder is written by rank 0 and read by all: it must be on a disk they share.

Batches of tasks are moved, cast and cut here, too.
"""

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from amortes.errors import ConfigError, DataError
from amortes.prior.tasks import TaskBatch

T = TypeVar("T")
Batch = TypeVar("Batch", bound=Sized)
CPU = torch.device("cpu")
NUMERICAL = (DataError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]
"""What a block that computes may raise, on data or weights it cannot cope with."""


def place(task: T, device: torch.device, dtype: torch.dtype) -> T:
    """The batch on a device, in the given type; hyperparameters stay float64 (no network input)."""

    def move(t: Tensor) -> Tensor:
        return t.to(device, dtype if t.is_floating_point() else t.dtype)

    moved = map_tensors(task, move)
    if isinstance(task, TaskBatch):
        hyper = map_tensors(task.hyper, lambda t: t.to(device))
        return dataclasses.replace(moved, hyper=hyper)  # type: ignore[type-var]
    return moved


def take_rows(task: T, rows: slice) -> T:
    """Some of the b datasets of a batch."""
    return map_tensors(task, lambda t: t[rows])


def map_tensors(value: T, function: Callable[[Tensor], Tensor]) -> T:
    """Apply a function to every tensor of a dataclass, also of those inside it."""
    changes = {}
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if item is not None:
            item = function(item) if isinstance(item, Tensor) else map_tensors(item, function)
        changes[field.name] = item
    return type(value)(**changes)


@dataclass(frozen=True)
class Ranks:
    """The place of this process among those of the run; alone unless torchrun started it."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and talks."""
        return self.rank == 0

    def rows(self, batch_size: int) -> slice:
        """Rows of a batch that are this rank's; the shares differ by one row at most."""
        if batch_size < self.world:
            raise ConfigError(
                f"tasks.batch_size: {batch_size} rows are too few for {self.world} processes."
            )
        return slice(
            batch_size * self.rank // self.world, batch_size * (self.rank + 1) // self.world
        )

    def share(self, task: Batch) -> tuple[Batch, float]:
        """The rows of a batch that are this rank's, and which part of the batch that is."""
        b = len(task)
        rows = self.rows(b)
        return take_rows(task, rows), (rows.stop - rows.start) / b

    def sum(self, values: Sequence[float]) -> list[float]:
        """Elementwise sum over ranks."""
        if self.world == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return [float(value) for value in total]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace every gradient by its sum over ranks."""
        for parameter in parameters:
            if self.world > 1 and parameter.grad is not None:
                dist.all_reduce(parameter.grad)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A numerical error in the block on one rank becomes one on all."""
        error: Exception | None = None
        try:
            yield
        except NUMERICAL as raised:
            error = raised
        (failures,) = self.sum([error is not None])
        if error is not None:
            raise error
        if failures:
            raise DataError("Another process failed; its message says how.")

    def wait(self) -> None:
        """Return when all ranks have come here."""
        if self.world > 1:
            dist.barrier()


def find_device(name: str) -> torch.device:
    """The processor of that name, cpu or cuda; `ConfigError` if this machine has none such."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: must be cpu or cuda, not {name!r}.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: this machine has no GPU that torch can use; try --device cpu.")
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


@contextlib.contextmanager
def joined(device: str = "cpu") -> Iterator[Ranks]:
    """Join the processes started by torchrun, if it was it that started this one."""
    world, place = int(os.environ.get("WORLD_SIZE", "1")), find_device(device)
    if world == 1:
        yield Ranks(device=place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    # Optimisers import this at their first step. Imported when the group exists already, it keeps a
    # reference to it: threads of gloo then outlive the interpreter, and now and then abort.
    importlib.import_module("torch._dynamo")
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    ranks = Ranks(dist.get_rank(), world, place)
    yield ranks
    # Leave together, since rank 0 may still be writing. After an error nothing is put in order:
    # others may wait for this rank in another call, and torchrun ends them all.
    ranks.wait()
    dist.destroy_process_group()


@contextlib.contextmanager
def torch_settings(threads: int | None) -> Iterator[None]:
    """Run the block with so many threads of torch, or as many as there are, and without denormals.

    Weights of unlikely particles are denormal numbers, which make matrix products ten times slower
    (docs/log.md, 2026-11-15).
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)
