"""Tensors and a JSON description in one safetensors file: read without running any code.

The description sits in the header under `amortes`: format name and version, whatever the caller
adds, and a SHA-256 of all tensors and of the description. A file that is missing, cut short,
altered or made by something else is a `FileError` that says so.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from amortes.errors import FileError
from amortes.files import AnyPath, atomic_path


def write_tensors(
    target: AnyPath,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    *,
    kind: str,
    version: int,
) -> None:
    """Write tensors and their description atomically; `kind` and `version` name the format."""
    whole = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    header = {"format": kind, "version": version, "digest": _digest(whole), **about}
    header["checksum"] = _checksum(header)
    content = save(whole, {"amortes": json.dumps(header, allow_nan=False)})
    with atomic_path(target) as temporary:
        # Not `save_file`, which replaces the file by one that only its owner may read.
        temporary.write_bytes(content)


def read_tensors(
    source: AnyPath, *, kind: str, version: int
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description in a file of this format, checked against its digest."""
    try:
        with safe_open(source, framework="pt") as file:
            text = (file.metadata() or {}).get("amortes")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(f"{source} does not exist.") from None
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{source} cannot be read: it is damaged, cut short, or no safetensors file ({error})."
        ) from error
    try:
        about = json.loads(text or "")
        checksum = about.pop("checksum", None)
        expected = _checksum(about)
        found = about.pop("format"), about.pop("version")
        digest = about.pop("digest")
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        raise FileError(f"{source} was not written by amortes: it has no description.") from None
    if found != (kind, version):
        raise FileError(
            f"{source} is a file of kind {found[0]!r}, version {found[1]}; "
            f"expected is {kind!r}, version {version}."
        )
    if digest != _digest(tensors):
        raise FileError(f"{source} is damaged: its tensors do not match their checksum.")
    # Checkpoints of earlier versions have none.
    if checksum is not None and checksum != expected:
        raise FileError(f"{source} is damaged: its description does not match its checksum.")
    return tensors, about


def _checksum(header: Mapping[str, Any]) -> str:
    """SHA-256 of a description, the digest of the tensors included."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        t = tensors[name]
        digest.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        digest.update(t.contiguous().numpy().tobytes())
    return digest.hexdigest()
