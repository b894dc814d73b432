"""Scripts and styles, which browsers keep: their address has a digest of what they are."""

import hashlib
import importlib.resources
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

HERE = Path(str(importlib.resources.files("amortes.lab"))) / "static"


def _digest() -> str:
    found = hashlib.sha256()
    for file in sorted(HERE.rglob("*")):
        if file.is_file():
            found.update(file.relative_to(HERE).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]


ADDRESS = f"/static/{_digest()}"


class Assets(StaticFiles):
    """The files at `ADDRESS`; a browser that has one need not ask for it again."""

    def __init__(self) -> None:
        super().__init__(directory=HERE)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file as an answer."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "private, max-age=31536000, immutable"
        return response
