"""Keeps everybody out but those who have the token, and pages of other sites in any case.

- Host: an address or a name of this machine, so that no foreign name can be pointed at it (DNS
  rebinding).
- Origin and Sec-Fetch-Site, if a browser sends them: only our own pages may change anything.
- Token: `Authorization: Bearer`, or the cookie that the address with the token sets
  (HttpOnly, SameSite=Strict).
- Bodies are limited. Answers carry a content security policy and are not kept in shared caches.
"""

import ipaddress
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 4 * 2**20  # bytes of a request
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
ENTER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>amortes lab</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url=/">
<p><a href="/">Go to the studies</a></p></html>"""
LOCKED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>amortes lab</title>
<link rel="icon" href="data:,">
<body style="font: 1.1rem/1.5 system-ui; max-width: 36rem; margin: 4rem auto; padding: 0 1rem">
<h1>This page needs its key</h1><p>Open the address that <code>amortes lab</code> printed when it
was started; it ends in <code>?token=…</code>. After a restart there is a new one.</p></html>"""


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str] = ()) -> None:
        self.app, self.token = app, token
        self.names = {"localhost", socket.gethostname().lower(), *(n.lower() for n in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, _hardened(send))
            return
        await self.app(scope, _limited(receive), _hardened(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to who may not enter, or who enters with the token; None for the others."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._ours(host):
            return _error(400, "This name is not one of the lab's; open the address it printed.")
        if scope["method"] not in SAFE and not _same_origin(headers, host):
            return _error(403, "Requests from other sites are refused.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST:
            return _error(413, f"A request may have at most {LARGEST >> 20} MB.")
        request = Request(scope)
        given = request.query_params.get("token")
        if given is not None and scope["path"] == "/" and self._right(given):
            entering = HTMLResponse(ENTER)
            entering.set_cookie(
                _cookie_name(host), self.token, httponly=True, samesite="strict", path="/"
            )
            return entering
        if self._right(_bearer(headers)) or self._right(request.cookies.get(_cookie_name(host))):
            return None
        if scope["path"].startswith("/api"):
            refused = _error(401, "The token is missing or wrong: send it as a bearer token.")
            refused.headers["www-authenticate"] = "Bearer"
            return refused
        return HTMLResponse(LOCKED, 401)

    def _right(self, token: str | None) -> bool:
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())

    def _ours(self, host: str) -> bool:
        try:
            address = urlsplit(f"//{host}")
            _ = address.port  # raises if it is none
            if address.hostname not in self.names:
                ipaddress.ip_address(address.hostname or "")
        except ValueError:
            return False
        return True  # nobody can point an address elsewhere


def _same_origin(headers: Headers, host: str) -> bool:
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin in (f"http://{host}", f"https://{host}")


def _cookie_name(host: str) -> str:
    """One for each port: browsers share cookies between them."""
    return f"amortes-lab-{urlsplit(f'//{host}').port or 80}"


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message, "problems": []}, status)


def _limited(receive: Receive) -> Receive:
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST:
            raise HTTPException(413, "The request is too large.")
        return message

    return limited


def _hardened(send: Send) -> Send:
    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["content-security-policy"] = POLICY
            headers["x-content-type-options"] = "nosniff"
            headers["referrer-policy"] = "no-referrer"
            headers["cross-origin-opener-policy"] = "same-origin"
            headers["cross-origin-resource-policy"] = "same-origin"
            headers.setdefault("cache-control", "no-cache, private")
        await send(message)

    return hardened
