"""Work on one thread, so that results do not depend on how many cores there are.

Suggestions are made of hundreds of small operations, which more threads do not make faster; and
beside other work, such as what is being tuned, threads that wait for each other made them more
than ten times slower (docs/log.md).

PyTorch keeps the number for each Python thread, and once more for threads that have not used it
yet: a thread whose first look at PyTorch falls into another one's block would stay with one. So a
block that begins while others are open, in a thread with one, gives back what the first of them
found; unless that one was chosen, by `use_threads`.
"""

import contextlib
import threading
from collections.abc import Iterator

import torch

_lock = threading.Lock()
_open = 0  # blocks, of all threads
_usual = 1  # number of threads before the first of them began
_mine = threading.local()


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


def use_threads(count: int) -> None:
    """Give the calling thread so many intra-op threads, whoever is in a block at the moment."""
    torch.get_num_threads()  # the first call in a thread takes the common number; then ours stays
    torch.set_num_threads(count)
    _mine.chosen = True
