import threading

import torch

from amortes.optimiser.executor import executor_of


def test_one_worker_is_the_caller() -> None:
    with executor_of(1) as executor:
        assert executor.submit(threading.current_thread).result() is threading.current_thread()
        error = executor.submit(int, "x").exception()
    assert isinstance(error, ValueError)


def test_several_have_threads_of_their_own_with_as_many_cores() -> None:
    together = threading.Barrier(2, timeout=20)

    def work() -> tuple[int, int]:
        together.wait()
        return threading.get_ident(), torch.get_num_threads()

    with executor_of(2) as executor:
        a, b = (future.result() for future in [executor.submit(work), executor.submit(work)])
    assert len({a[0], b[0], threading.get_ident()}) == 3
    assert {a[1], b[1]} == {torch.get_num_threads()}
