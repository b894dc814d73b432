import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest

from amortes.engines import Engine, Made, local_engine, ray_engine
from amortes.errors import AmortesError, ConfigError, MissingExtraError


def double(index: int) -> Made:
    return index, bytes(2 * index)


def fail_at_nine(index: int) -> Made:
    if index == 9:
        raise ValueError("nine")
    return double(index)


def die(index: int) -> Made:
    os._exit(9)


def announce_and_sleep(index: int) -> Made:
    if index:
        Path(os.environ["AMORTES_TEST_FOLDER"], str(os.getpid())).touch()
        time.sleep(60)
    return double(index)


def wait_for_workers(folder: Path) -> list[int]:
    """Process numbers of two workers that have announced themselves."""
    deadline = time.monotonic() + 120
    while len(pids := os.listdir(folder)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [int(pid) for pid in pids]


def check_results(engine: Engine, count: int) -> None:
    results = dict(engine(double, range(count)))
    assert results == {index: bytes(2 * index) for index in range(count)}


def test_one_worker_is_this_process() -> None:
    check_results(local_engine(1), 5)
    assert list(local_engine(1)(lambda index: (index, b"not picklable"), [4]))


def test_processes_compute_everything_once() -> None:
    check_results(local_engine(2), 23)


def test_an_error_of_a_task_comes_through() -> None:
    with pytest.raises(ValueError, match="nine"):
        list(local_engine(2)(fail_at_nine, range(20)))


def test_a_killed_worker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(AmortesError, match="fewer workers"):
        list(local_engine(2)(die, range(3)))


def test_closing_ends_the_workers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMORTES_TEST_FOLDER", str(tmp_path))
    results = local_engine(2)(announce_and_sleep, range(9))
    assert isinstance(results, Generator)
    next(results)
    pids = wait_for_workers(tmp_path)
    begin = time.monotonic()
    results.close()
    assert time.monotonic() - begin < 10
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_interrupt_ends_all_processes_without_a_word(tmp_path: Path) -> None:
    # Shells let programs in the background ignore Ctrl-C, and these tests may be one.
    program = """
import signal
from amortes.engines import local_engine
from tests.test_engines import announce_and_sleep
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    list(local_engine(2)(announce_and_sleep, range(1, 9)))
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"AMORTES_TEST_FOLDER": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers = wait_for_workers(tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: parent and workers
    assert process.communicate(timeout=120) == ("interrupted\n", "")
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="workers"):
        local_engine(0)


def test_ray_computes_everything_once_until_a_task_fails() -> None:
    pytest.importorskip("ray")
    handler = signal.getsignal(signal.SIGTERM)
    results = ray_engine(workers=1)(fail_at_nine, range(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about itself
        made = [next(results) for _ in range(9)]
        with pytest.raises(AmortesError, match="nine"):
            next(results)
    # With one core, tasks end in the order they were given.
    assert made == [double(index) for index in range(9)]
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:port"])
def test_an_address_without_a_cluster_is_named(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=address):
        list(ray_engine(address)(double, range(3)))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install amortes\[ray\]"):
        ray_engine()
