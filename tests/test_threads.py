import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from amortes import threads
from amortes.threads import on_cpu, single_thread, use_threads


def test_threads_are_restored_even_after_an_error() -> None:
    before = torch.get_num_threads()
    inside = []

    def fail() -> None:
        with single_thread():
            inside.append(torch.get_num_threads())
            raise ZeroDivisionError

    try:
        torch.set_num_threads(2)
        with pytest.raises(ZeroDivisionError):
            fail()
        assert inside == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_blocks_nest() -> None:
    with single_thread():
        with single_thread():
            pass
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_thread_that_begins_in_the_block_of_another_does_not_stay_with_one() -> None:
    def block() -> int:
        with single_thread():
            pass
        return torch.get_num_threads()

    with single_thread(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(block).result() == 2
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 2


@pytest.mark.usefixtures("two_threads")
def test_blocks_that_overlap_leave_the_number_as_it_was() -> None:
    entered, leave = Event(), Event()

    def long_block() -> None:
        with single_thread():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(long_block)
        entered.wait()
        with single_thread():
            leave.set()
            long.result()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_can_be_given_during_a_block() -> None:
    with single_thread(), ThreadPoolExecutor(1, initializer=use_threads, initargs=(2,)) as pool:
        assert pool.submit(torch.get_num_threads).result() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_thread_that_chose_one_keeps_it() -> None:
    def block() -> int:
        with single_thread():
            pass
        return torch.get_num_threads()

    with single_thread(), ThreadPoolExecutor(1, initializer=use_threads, initargs=(1,)) as pool:
        assert pool.submit(block).result() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_blocks_of_other_threads_end_with_a_fork() -> None:
    entered, leave = Event(), Event()

    def long_block() -> None:
        with single_thread(), threads._lock:
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(long_block)
        entered.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that hangs
            with single_thread():
                inside = threads._open
            os._exit(inside)
        _, status = os.waitpid(child, 0)
        leave.set()
    assert os.waitstatus_to_exitcode(status) == 1


def test_tensors_are_made_on_the_cpu() -> None:
    @on_cpu()
    def made() -> str:
        return torch.zeros(1).device.type

    try:
        torch.set_default_device("meta")
        assert torch.zeros(1).device.type == "meta"
        assert made() == "cpu"
        with on_cpu():
            assert torch.ones(2).sum() == 2
        assert torch.zeros(1).device.type == "meta"
    finally:
        torch.set_default_device("cpu")
