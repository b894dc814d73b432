import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from amortes.errors import FileError
from amortes.training.tensorfile import read_tensors, write_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(2.5, dtype=torch.float64)}


def write(path: Path) -> None:
    write_tensors(path, TENSORS, {"step": 3}, kind="k", version=1)


def test_round_trip(tmp_path: Path) -> None:
    write(tmp_path / "f")
    tensors, about = read_tensors(tmp_path / "f", kind="k", version=1)
    assert about == {"step": 3}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == TENSORS[name].dtype
        assert torch.equal(tensor, TENSORS[name])


def test_others_may_read_what_they_may_read_of_any_file(tmp_path: Path) -> None:
    write(tmp_path / "f")
    (tmp_path / "plain").touch()
    assert (tmp_path / "f").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_tensors(tmp_path / "f", kind="k", version=1)


@pytest.mark.parametrize("kept", [0, 4, 50, -1])
def test_cut_short(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "f"
    write(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(FileError, match="cut short"):
        read_tensors(path, kind="k", version=1)


@pytest.mark.parametrize("data", [b"hello, world" * 9, struct.pack("<Q", 2**60) + b"{}"])
def test_foreign(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FileError, match="no safetensors file"):
        read_tensors(tmp_path / "f", kind="k", version=1)


@pytest.mark.parametrize("metadata", [None, {"x": "y"}, {"amortes": "[]"}, {"amortes": "{"}])
def test_safetensors_of_others(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    save_file(TENSORS, tmp_path / "f", metadata)
    with pytest.raises(FileError, match="not written by amortes"):
        read_tensors(tmp_path / "f", kind="k", version=1)


@pytest.mark.parametrize(("kind", "version"), [("other", 1), ("k", 2)])
def test_other_format(tmp_path: Path, kind: str, version: int) -> None:
    write(tmp_path / "f")
    with pytest.raises(FileError, match=f"expected is '{kind}', version {version}"):
        read_tensors(tmp_path / "f", kind=kind, version=version)


def test_altered_value(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(FileError, match="checksum"):
        read_tensors(path, kind="k", version=1)


def rewrite(path: Path, **changes: object) -> None:
    """Change the description of a file, and nothing else."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    about = json.loads(header["__metadata__"]["amortes"]) | changes
    about = {name: value for name, value in about.items() if value is not None}
    header["__metadata__"]["amortes"] = json.dumps(about)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def test_altered_description(tmp_path: Path) -> None:
    write(tmp_path / "f")
    rewrite(tmp_path / "f")
    assert read_tensors(tmp_path / "f", kind="k", version=1)[1] == {"step": 3}
    rewrite(tmp_path / "f", step=4)
    with pytest.raises(FileError, match="its description does not match its checksum"):
        read_tensors(tmp_path / "f", kind="k", version=1)


def test_files_of_before_descriptions_had_a_checksum(tmp_path: Path) -> None:
    write(tmp_path / "f")
    rewrite(tmp_path / "f", checksum=None)
    assert read_tensors(tmp_path / "f", kind="k", version=1)[1] == {"step": 3}


def test_pickle_is_not_executed(tmp_path: Path) -> None:
    trap = tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (trap,)

    torch.save({"a": Trap()}, tmp_path / "f")
    np.save(tmp_path / "g", np.array([Trap()]), allow_pickle=True)
    for name in ("f", "g.npy"):
        with pytest.raises(FileError):
            read_tensors(tmp_path / name, kind="k", version=1)
    assert not trap.exists()


def test_header_is_json_for_other_tools(tmp_path: Path) -> None:
    write(tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["amortes"])
    assert (header["format"], header["version"], header["step"]) == ("k", 1, 3)
