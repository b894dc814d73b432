"""Work on one thread, so that results do not depend on how many cores there are.

Suggestions are made of hundreds of small operations, which more threads do not make faster; and
beside other work, such as what is being tuned, threads that wait for each other made them more
than ten times slower (docs/log.md).
"""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run the block with one intra-op thread: sums are then taken in the same order everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
