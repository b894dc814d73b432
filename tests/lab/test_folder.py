from pathlib import Path

import pytest

from amortes import Float, Optimizer
from amortes.lab.about import About
from amortes.lab.errors import NotFoundError
from amortes.lab.folder import Folder, slug


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    path = tmp_path / "lab"
    path.mkdir()
    return Folder(path)


def run() -> Optimizer:
    return Optimizer({"x": Float(0, 1)})


def test_studies_of_one_name_get_folders_of_their_own(folder: Folder) -> None:
    made = [folder.create(run(), About(name="Café au lait")).id for _ in range(3)]
    assert made == ["cafe-au-lait", "cafe-au-lait-2", "cafe-au-lait-3"]
    assert {entry.id for entry in folder.entries()} == set(made)
    assert (folder.path / "cafe-au-lait-2" / "state.json").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("A b", "a-b"), ("../../etc", "etc"), ("日本", "study"), ("x" * 99, "x" * 60), (".", "study")],
)
def test_names_become_names_of_folders(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_what_there_is_in_a_folder(folder: Folder) -> None:
    run().save(folder.path / "tune.json")
    run().save(folder.path / "optimised" / "state.json")
    (folder.path / "other.json").write_text("{}")
    (folder.path / "notes.txt").write_text("hello")
    (folder.path / "empty").mkdir()
    (folder.path / "torn.json").write_text('{"format": "amortes-optimizer", ')
    entries = {entry.id: entry for entry in folder.entries()}
    assert set(entries) == {"tune.json", "optimised", "torn.json"}
    assert entries["torn.json"].snapshot is None
    assert "torn.json is not valid JSON" in entries["torn.json"].error


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../outside.json", "/etc/passwd", ".hidden.json", "a/b", "a\\b", "a\0b"),
        *(
            "a\n",
            "link.json",
            "linked",
            "nothing",
            "run.lab.json",
            "x" * 300 + ".json",
            "😀" * 200 + ".json",
            "C:a.json",
            "x\ud800.json",
        ),
    ],
)
def test_no_name_leads_out_of_the_folder(folder: Folder, name: str) -> None:
    run().save(folder.path.parent / "outside.json")
    run().save(folder.path.parent / "away" / "state.json")
    run().save(folder.path / ".hidden.json")
    run().save(folder.path / "run.lab.json")
    (folder.path / "link.json").symlink_to(folder.path.parent / "outside.json")
    (folder.path / "linked").symlink_to(folder.path.parent / "away")
    with pytest.raises(NotFoundError, match="There is no study"):
        folder.study(name)
    assert folder.entries() == []


def test_a_study_that_was_replaced_is_found_anew(folder: Folder) -> None:
    run().save(folder.path / "a.json")
    first = folder.study("a.json")
    assert folder.study("a.json") is first
    (folder.path / "a.json").unlink()
    with pytest.raises(NotFoundError):
        folder.study("a.json")


@pytest.mark.parametrize("name", ["Läufe & 50% #1?.json", "n" * 120 + ".json", "a'\"<b>;.json"])
def test_programs_may_name_their_files_as_they_like(folder: Folder, name: str) -> None:
    run().save(folder.path / name)
    assert name in [entry.id for entry in folder.entries()]
    assert folder.study(name).read().trials == []
