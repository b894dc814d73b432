import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from amortes.errors import ConfigError
from amortes.lab import serve


def test_a_token_is_long_and_new_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(serve.TOKEN_VARIABLE, raising=False)
    assert len(serve.choose_token()) >= 32
    assert serve.choose_token() != serve.choose_token()


def test_a_token_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(serve.TOKEN_VARIABLE, "0123456789abcdef")
    assert serve.choose_token() == "0123456789abcdef"
    for weak in ("", "short", "with spaces in between", "ümlaut-0123456789"):
        monkeypatch.setenv(serve.TOKEN_VARIABLE, weak)
        with pytest.raises(ConfigError, match=serve.TOKEN_VARIABLE):
            serve.choose_token()


def test_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert taken.proto == socket.IPPROTO_TCP  # asyncio turns off Nagle's delay only then
        with pytest.raises(ConfigError, match=f"--port: cannot use {port}"):
            serve.listen("127.0.0.1", port)
        monkeypatch.setattr(serve, "FIRST", port)
        monkeypatch.setattr(serve, "PORTS", 1)
        with pytest.raises(ConfigError, match="none of"):
            serve.listen("127.0.0.1", None)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("0.0.0.0", socket.gethostname()),
    ],
)
def test_the_address(host: str, shown: str) -> None:
    assert serve.address(host, 80, "t") == f"http://{shown}:80/?token=t"


@pytest.mark.filterwarnings("default")  # serve changes the filters
def test_serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    opened: list[str] = []

    class Timer:
        def __init__(self, seconds: float, function: Any, args: list[str]) -> None:
            self.start = lambda: opened.extend(args)

    class Server:
        def __init__(self, config: Any) -> None:
            assert config.app is not None

        def run(self, sockets: list[socket.socket]) -> None:
            assert f":{sockets[0].getsockname()[1]}/" in said[-1]

    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setattr(uvicorn, "Server", Server)
    serve.serve(tmp_path, host="127.0.0.1", port=0, browser=True, say=said.append)
    assert opened == said
    serve.serve(tmp_path, host="127.0.0.1", port=0, browser=False, say=said.append)
    assert len(opened) == 1
