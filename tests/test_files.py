import sys
from pathlib import Path

import pytest

from amortes.errors import FileError
from amortes.files import (
    atomic_path,
    clear_stale,
    exists,
    locked,
    read_json,
    sha256,
    write_json,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")

    def fail() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_json_round_trip_makes_folders(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "a.json"
    write_json(target, {"a": [1, 2.5, None]})
    assert read_json(target) == {"a": [1, 2.5, None]}
    (tmp_path / "plain").touch()
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_missing_and_damaged_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.json does not exist"):
        read_json(tmp_path / "gone.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(FileError, match=r"bad\.json is not valid JSON"):
        read_json(tmp_path / "bad.json")


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "a.json", tmp_path / "a\0b"):
        with pytest.raises(FileError, match=r"cannot write .*: \w"):
            write_json(place, 1)
        with pytest.raises(FileError, match=r"cannot read .*: \w"):
            read_json(place)
    for value in (None, 3, ["a"]):
        with pytest.raises(FileError, match="expected a path, not"):
            read_json(value)  # type: ignore[arg-type]
    with pytest.raises(FileError, match="cannot write"), locked(tmp_path / "file" / "a", "x"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_names_that_are_too_long(tmp_path: Path) -> None:
    place = tmp_path / ("a" * 5000)
    assert not exists(place)
    with pytest.raises(FileError, match=r"cannot write .*: File name too long"):
        locked(place, "x").__enter__()


def test_sha256_of_a_known_text(tmp_path: Path) -> None:
    write_text(tmp_path / "abc", "abc")
    assert sha256(tmp_path / "abc").startswith("ba7816bf8f01cfea")


def test_a_locked_folder_keeps_others_out_until_it_is_left(tmp_path: Path) -> None:
    refused = pytest.raises(FileError, match="another sweep is using")
    with locked(tmp_path, "sweep"), refused, locked(tmp_path, "sweep"):
        pass
    with locked(tmp_path, "sweep"):
        pass


def test_a_locked_file_keeps_others_away_though_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    with locked(path, "run"):
        write_json(path, 1)
        refused = pytest.raises(FileError, match=r"another run is using .* another file")
        with refused, locked(path, "run"):
            pass
        with locked(path.with_name("other.json"), "run"):
            pass
    with locked(path, "run"):
        pass


def test_without_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    entered = []
    with locked(tmp_path, "sweep"), locked(tmp_path, "sweep"):
        entered.append(True)
    assert entered


def test_only_what_was_half_written_is_cleared(tmp_path: Path) -> None:
    half = []
    for name in ("a.txt", "b-7.txt", "c.txt"):
        with atomic_path(tmp_path / name) as temporary:
            temporary.write_text("whole")
        temporary.write_text("half")  # as a kill leaves it
        half.append(temporary)
    clear_stale(tmp_path, "a.txt", "b-*.txt")
    assert [path.exists() for path in half] == [False, False, True]
    assert (tmp_path / "a.txt").read_text() == "whole"
