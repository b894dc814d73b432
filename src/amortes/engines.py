"""Engines: who computes many tasks, such as the shards of a corpus or the runs of a sweep.

An engine is a function (task, indices) -> generator of task(index), in any order. It keeps only a
few results at a time, stops its workers as soon as the generator is closed, and never writes to
disk: workers may be killed at any moment and may live on machines without a shared file system.
(A pool of the standard library does it; `joblib` would be one more dependency of the core.)
"""

import contextlib
import itertools
import multiprocessing
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from amortes.errors import AmortesError, ConfigError, needs_extra

Made = tuple[int, Any]  # index and result of a task
Task = Callable[[int], Made]
Engine = Callable[[Task, Sequence[int]], Generator[Made, None, None]]

QUEUED_PER_WORKER = 2  # so that no worker waits while a result is being written


def local_engine(workers: int) -> Engine:
    """Processes on this machine; with one worker, the process that asks."""
    if workers < 1:
        raise ConfigError(f"workers: must be positive, not {workers}.")
    return _run_here if workers == 1 else partial(_run_processes, workers)


def ray_engine(address: str | None = None, workers: int | None = None) -> Engine:
    """Tasks of one core each on the Ray cluster at `address`, or on `workers` cores here.

    Every machine of the cluster needs the same version of amortes.
    """
    with needs_extra("ray", "The ray engine needs Ray", ", or use the local engine"):
        import ray  # noqa: F401
    return partial(_run_ray, address, workers)


def _run_here(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
    yield from map(task, indices)


def _run_processes(workers: int, task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
    others = set(multiprocessing.active_children())
    # A forked child would inherit the locks of torch's threads, in whatever state they are.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    queue = iter(indices)
    try:
        with _interrupts_held():
            first = itertools.islice(queue, QUEUED_PER_WORKER * workers)
            pending = {executor.submit(task, index) for index in first}
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                pending |= {executor.submit(task, i) for i in itertools.islice(queue, 1)}
                yield future.result()
    except BrokenProcessPool as error:
        raise AmortesError(
            "a worker process was killed, most often because memory ran out. Finished work is "
            "kept: run the same command again, with fewer workers."
        ) from error
    except BaseException:
        # Tasks in flight are abandoned: who interrupts does not want to wait for them.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Let a worker end when its parent was killed; otherwise it waits for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started inside never see Ctrl-C; their parent does, at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_ray(
    address: str | None, workers: int | None, task: Task, indices: Sequence[int]
) -> Generator[Made, None, None]:
    import ray

    def run(index: int) -> Made:  # Ray takes functions only, and a task is a partial one
        return task(index)

    _start_ray(address, workers)
    remote = ray.remote(num_cpus=1)(run)
    queue = iter(indices)
    try:
        queued = QUEUED_PER_WORKER * int(ray.cluster_resources()["CPU"])
        pending = [remote.remote(index) for index in itertools.islice(queue, queued)]
        while pending:
            finished, pending = ray.wait(pending)
            pending += [remote.remote(index) for index in itertools.islice(queue, 1)]
            yield ray.get(finished[0])
    except ray.exceptions.RayError as error:
        raise AmortesError(f"Ray could not finish a task: {error}") from error
    finally:
        ray.shutdown()


def _start_ray(address: str | None, workers: int | None) -> None:
    import ray

    if address and ":" in address:
        host, _, port = address.rpartition(":")
        try:  # Ray itself tries for many minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, ValueError) as error:
            raise ConfigError(f"No Ray cluster answers at {address}: {error}.") from error
    where = {"address": address} if address else {"address": "local", "num_cpus": workers}
    handler = signal.getsignal(signal.SIGTERM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about Ray
        try:
            ray.init(**where, include_dashboard=False, log_to_driver=False, logging_level="error")
        except ConnectionError as error:
            raise ConfigError(f"No Ray cluster at {address}: {error}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray replaces it
