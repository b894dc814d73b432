"""Where PyTorch works: on one thread, so that results do not depend on how many cores there are,
and on the CPU.

Suggestions are made of hundreds of small operations, which more threads do not make faster; and
beside other work, such as what is being tuned, threads that wait for each other made them more
than ten times slower (docs/log.md).

PyTorch keeps the number for each Python thread, and once more for threads that have not used it
yet: a thread whose first look at PyTorch falls into another one's block would stay with one. So a
block that begins while others are open, in a thread with one, gives back what the first of them
found; unless that one was chosen, by `use_threads`. (`threadpoolctl` leaves
PyTorch's number as it is.)

Tuning a network is what users do, and one that trains on a GPU may have said
`torch.set_default_device("cuda")`. What chooses its hyperparameters runs on the CPU all the same.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch

_lock = threading.Lock()
_open = 0  # blocks, of all threads
_usual = 1  # number of threads before the first of them began
_mine = threading.local()
_owners: "weakref.WeakSet[Any]" = weakref.WeakSet()  # of locks


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run the block with one intra-op thread: sums are then taken in the same order everywhere."""
    global _open, _usual
    if getattr(_mine, "inside", False):
        yield
        return
    with _lock:
        before = torch.get_num_threads()
        if _open == 0:
            _usual = before
        elif before == 1 and not getattr(_mine, "chosen", False):
            before = _usual
        _open += 1
        torch.set_num_threads(1)
    _mine.inside = True
    try:
        yield
    finally:
        _mine.inside = False
        with _lock:
            _open -= 1
            torch.set_num_threads(before)


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Work on the CPU and one thread within the block, or the function this decorates."""
    # The context slows every operation down a little: only where it is needed.
    away = torch.get_default_device().type != "cpu"
    with torch.device("cpu") if away else contextlib.nullcontext(), single_thread():
        yield


def use_threads(count: int) -> None:
    """Give the calling thread so many intra-op threads, whoever is in a block at the moment."""
    torch.get_num_threads()  # the first call in a thread takes the common number; then ours stays
    torch.set_num_threads(count)
    _mine.chosen = True


def lock_of(owner: Any) -> "threading.RLock":
    """A reentrant lock to keep as `owner._lock`, which is a new one in every forked child.

    A child has only the thread that forked: a lock that another one held would stay locked.
    """
    _owners.add(owner)
    return threading.RLock()


def _after_fork() -> None:
    global _lock, _open
    _lock, _open = threading.Lock(), int(getattr(_mine, "inside", False))
    for owner in list(_owners):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
