import signal
import threading

import pytest

from amortes.training.interrupt import SIGNALS, StopRequest


@pytest.mark.parametrize("signum", SIGNALS)
def test_first_signal_is_noted_second_raises(signum: signal.Signals) -> None:
    before = signal.getsignal(signum)
    with StopRequest() as stop:
        noted = [stop.requested]
        signal.raise_signal(signum)
        noted.append(stop.requested)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signum)
    assert noted == [False, True]
    assert signal.getsignal(signum) is before


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with StopRequest() as stop:
            seen.append((stop.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
