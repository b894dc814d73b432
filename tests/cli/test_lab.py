import builtins
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from amortes.cli.lab import lab
from amortes.errors import FileError, MissingExtraError
from amortes.lab import serve


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server was started with."""
    given: dict[str, Any] = {}

    def fake(folder: Path, **options: Any) -> None:
        given.update(options, folder=folder)
        options["say"]("http://127.0.0.1:1/?token=t")

    monkeypatch.setattr(serve, "serve", fake)
    return given


def test_the_address_is_printed_and_the_folder_made(served: dict[str, Any], tmp_path: Path) -> None:
    result = CliRunner().invoke(lab, [str(tmp_path / "new"), "--port", "0", "--no-browser"])
    assert result.exit_code == 0
    assert "http://127.0.0.1:1/?token=t\n" in result.output
    assert (tmp_path / "new").is_dir()
    assert (served["host"], served["port"], served["browser"]) == ("127.0.0.1", 0, False)


def test_other_hosts_are_warned_of(served: dict[str, Any], tmp_path: Path) -> None:
    quiet = CliRunner().invoke(lab, [str(tmp_path)])
    assert "not encrypted" not in quiet.output
    assert served["browser"]
    result = CliRunner().invoke(lab, [str(tmp_path), "--host", "0.0.0.0"])
    assert "not encrypted" in " ".join(result.output.split())


def test_a_folder_that_cannot_be_made(served: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(lab, [str(tmp_path / "file" / "x")])
    assert isinstance(result.exception, FileError)


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def no_fastapi(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "amortes.lab.serve":
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_fastapi)
    result = CliRunner().invoke(lab, [str(tmp_path)])
    assert isinstance(result.exception, MissingExtraError)
    assert "needs FastAPI" in str(result.exception)
    assert "`pip install amortes[lab]`" in str(result.exception)
