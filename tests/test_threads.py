import pytest
import torch

from amortes.threads import single_thread


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
