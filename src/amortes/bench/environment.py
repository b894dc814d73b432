"""On what a sweep was run: machine, versions, commit, date.

`environment.json` describes the latest session of a sweep; sessions before it that differ in
anything but the date are kept under "earlier".
"""

import contextlib
import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import amortes
from amortes.errors import FileError
from amortes.files import read_json, write_json

PACKAGES = (
    "torch",
    "botorch",
    "gpytorch",
    "jax",
    "numpyro",
    "optuna",
    "smac",
    "HEBO",
    "scikit-learn",
    "numpy",
)


def commit() -> str:
    """The commit of the checkout that amortes is imported from, "+" if changed; "" if none."""
    file = Path(amortes.__file__)
    folder = file.parent
    try:
        # An installed package may lie in the ignored environment of another project.
        _git(folder, "ls-files", "--error-unmatch", file.name)
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        # Tests and notes may change without changing results.
        return head + ("+" if _git(folder, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe() -> dict[str, Any]:
    """What there is to know about this machine and installation."""
    return {
        "amortes": amortes.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write_environment(path: Path) -> dict[str, Any]:
    """Write or update the file; returns what it says about now."""
    now = describe()
    earlier: list[dict[str, Any]] = []
    with contextlib.suppress(FileError):
        before = read_json(path)
        earlier = before.pop("earlier", [])
        if {**before, "date": ""} != {**now, "date": ""}:
            earlier.append(before)
    write_json(path, now | {"earlier": earlier})
    return now


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
