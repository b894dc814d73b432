"""Where evaluations run: in the caller's thread, or in several at a time."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import torch

from amortes.threads import use_threads


@contextlib.contextmanager
def executor_of(workers: int) -> Iterator[Executor]:
    """Runs evaluations; what is still under way when the block ends is left to itself."""
    if workers == 1:
        yield Inline()
        return
    count = torch.get_num_threads()
    # A worker may begin while the next suggestion is made, on one thread.
    pool = ThreadPoolExecutor(workers, "amortes", initializer=use_threads, initargs=(count,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Inline(Executor):
    """Runs what is submitted at once in the caller's thread, where debuggers and Ctrl-C work."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The call's result or exception, already there."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
