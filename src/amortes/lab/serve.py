"""Starts the lab: a server on this machine, and the browser."""

import os
import secrets
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from amortes.errors import ConfigError
from amortes.lab.app import create_app
from amortes.optimiser import AmortesWarning

TOKEN_VARIABLE = "AMORTES_LAB_TOKEN"
SHORTEST = 16
PORTS = 20  # ports tried if none is asked for
FIRST = 8765
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def choose_token() -> str:
    """That of the environment, for instruments that keep it; else a new one."""
    chosen = os.environ.get(TOKEN_VARIABLE)
    if chosen is None:
        return secrets.token_urlsafe(24)
    if len(chosen) < SHORTEST or not chosen.isascii() or not chosen.isprintable() or " " in chosen:
        raise ConfigError(
            f"{TOKEN_VARIABLE}: must have at least {SHORTEST} letters, digits or symbols, and no "
            f"spaces. Without it, the lab makes a token."
        )
    return chosen


def listen(host: str, port: int | None) -> socket.socket:
    """A socket on the port asked for, or on the first that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in [port] if port is not None else range(FIRST, FIRST + PORTS):
        # With the protocol named, asyncio sends small answers at once; else each waits 40 ms.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, candidate))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            reason = error.strerror or str(error)
    if port is None:
        raise ConfigError(f"--port: none of {FIRST} to {FIRST + PORTS - 1} is free on {host}.")
    raise ConfigError(f"--port: cannot use {port} on {host} ({reason}); choose another one.")


def address(host: str, port: int, token: str) -> str:
    """What to open in a browser."""
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    shown = f"[{shown}]" if ":" in shown else shown
    return f"http://{shown}:{port}/?token={token}"


def serve(
    folder: Path,
    *,
    host: str,
    port: int | None,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serve a folder until interrupted; `say` is told the address."""
    token = choose_token()
    sock = listen(host, port)
    link = address(host, sock.getsockname()[1], token)
    # Pages show these themselves, where people look.
    warnings.filterwarnings("ignore", category=AmortesWarning)
    config = uvicorn.Config(
        create_app(folder, token=token, host=host),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    say(link)
    if browser:
        threading.Timer(0.5, webbrowser.open, [link]).start()
    try:
        uvicorn.Server(config).run(sockets=[sock])
    finally:
        sock.close()
