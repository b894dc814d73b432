"""Files that are either whole or absent.

Every file amortes writes goes through `atomic_path`: the data are written to a temporary file in
the same folder, flushed to disk and then renamed, so that a kill, a crash or a full disk leaves
the previous version (or nothing) in place, never half a file.
"""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amortes.errors import FileError, shown

CACHE_VARIABLE = "AMORTES_CACHE"
AnyPath = str | os.PathLike[str]


@contextlib.contextmanager
def atomic_path(target: AnyPath) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it to `target` if the block succeeds."""
    target = as_path(target)
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        temporary.touch(exist_ok=False)  # with the permissions that open() gives
    try:
        yield temporary
        with _writing(target):
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    """What the system refuses becomes a `FileError` that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: no name at all, or a null character
        raise FileError(f"cannot write {target}: {_reason(error)}.") from error


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless they exist."""
    with _writing(path):
        path.mkdir(parents=True, exist_ok=True)


def as_path(path: AnyPath) -> Path:
    """The path, or a `FileError` if it is none."""
    try:
        return Path(path)
    except TypeError:
        raise FileError(f"expected a path, not {shown(path)}.") from None


def exists(path: AnyPath) -> bool:
    """Whether there is something at the path; nothing is where no name can be that long."""
    return os.path.exists(path)  # unlike `Path.exists`, which raises OSError there


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def clear_stale(folder: AnyPath, *names: str) -> None:
    """Remove what a kill left of writing files of these names (or patterns); nobody may write."""
    for name in names:
        for stale in Path(folder).glob(f".{name}.*.tmp"):
            stale.unlink(missing_ok=True)


def write_text(target: AnyPath, text: str) -> None:
    """Write `text` to `target` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: AnyPath, value: Any) -> None:
    """Write `value` to `target` as indented JSON, atomically."""
    write_text(target, json.dumps(value, indent=2) + "\n")


def read_json(source: AnyPath) -> Any:
    """Read a JSON file; a missing or damaged one is a `FileError` that names it."""
    path = as_path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"{source} does not exist.") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{source} is not valid JSON ({error}).") from error
    except (OSError, ValueError) as error:  # a folder, no permission; a null character
        raise FileError(f"cannot read {source}: {_reason(error)}.") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of too many digits
        raise FileError(f"{source} is not valid JSON ({error}).") from error


def cache_folder(chosen: AnyPath | None = None) -> Path:
    """Where to keep what takes long: as chosen, $AMORTES_CACHE or ~/.cache/amortes, anywhere."""
    return Path(chosen or os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "amortes")


def sha256(source: AnyPath) -> str:
    """Hex SHA-256 digest of a file."""
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(place: Path, writer: str) -> Iterator[None]:
    """Keep every other `writer` out of a folder or away from a file, which need not exist yet.

    The system frees the lock of a killed one. Where there are no locks, nobody is kept out. (Unlike
    `filelock`, it locks a folder itself, without a file in it, and without locks falls back on no
    file that a kill would leave behind.)
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with _writing(place):
        kind = "folder" if place.is_dir() else "file"
        handle = _open_lock(place)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                f"another {writer} is using {place}. Wait for it to finish, stop it, or choose "
                f"another {kind}."
            ) from None
        except OSError:
            pass  # a file system without locks, as some networks have
        yield
    finally:
        os.close(handle)


def _open_lock(place: Path) -> int:
    """What to lock: a folder itself; for a file, which is replaced again and again, one beside."""
    if place.is_dir():
        return os.open(place, os.O_RDONLY)
    place.parent.mkdir(parents=True, exist_ok=True)
    # Never removed: who has it open and who makes a new one would not keep each other out.
    return os.open(place.with_name(f".{place.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
