"""Where tensors are made: on the CPU, whatever PyTorch's default device is.

Tuning a network is what users do, and one that trains on a GPU may have said
`torch.set_default_device("cuda")`. What chooses its hyperparameters runs on the CPU all the same.
"""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Make tensors on the CPU within the block, or within the function this decorates."""
    # The context slows every operation down a little: only where it is needed.
    away = torch.get_default_device().type != "cpu"
    with torch.device("cpu") if away else contextlib.nullcontext():
        yield
