import importlib.metadata
import subprocess
from pathlib import Path

import pytest
import torch

import amortes
from amortes.bench import environment
from amortes.bench.environment import commit, write_environment
from amortes.files import read_json


def test_the_latest_session_is_described_and_different_earlier_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "environment.json"
    now = write_environment(path)
    assert read_json(path) == now | {"earlier": []}
    assert now["amortes"] == amortes.__version__
    assert now["packages"]["torch"] == importlib.metadata.version("torch")
    assert str(torch.__version__).startswith(now["packages"]["torch"].split("+")[0])
    assert now["cpu"]
    write_environment(path)
    assert read_json(path)["earlier"] == []  # nothing but the date is new
    monkeypatch.setattr(environment, "commit", lambda: "another")
    write_environment(path)
    document = read_json(path)
    assert document["commit"] == "another"
    assert [e["commit"] for e in document["earlier"]] == [now["commit"]]


def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    file = tmp_path / "package" / "__init__.py"
    file.write_text("")
    monkeypatch.setattr(amortes, "__file__", str(file))
    assert commit() == ""
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    clean = commit()
    assert len(clean) == 12
    (tmp_path / "notes.txt").write_text("outside the package")
    assert commit() == clean
    file.write_text("changed = True")
    assert commit() == f"{clean}+"
    (tmp_path / ".gitignore").write_text(".venv/")
    (tmp_path / ".venv").mkdir()
    installed = tmp_path / ".venv" / "__init__.py"
    installed.write_text("")
    monkeypatch.setattr(amortes, "__file__", str(installed))
    assert commit() == ""  # that of another project
