from pathlib import Path

import pytest

from amortes.errors import FileError
from amortes.lab.about import About, Prediction, about_path, read_about


def test_it_is_kept_beside_the_run() -> None:
    assert about_path(Path("a/state.json")) == Path("a/state.lab.json")
    assert about_path(Path("run.json")) == Path("run.lab.json")


def test_what_is_written_is_read_again() -> None:
    about = About(name="Brot & Salz", units={"t": "°C"}, predictions={3: Prediction(median=1.0)})
    assert read_about(about.model_dump_json().encode(), Path("x")) == about


@pytest.mark.parametrize("text", ["", "[]", '{"name": 3}', '{"name": "a", "format": "other"}'])
def test_damage_is_explained(text: str) -> None:
    with pytest.raises(FileError, match=r"run\.lab\.json is"):
        read_about(text.encode(), Path("run.lab.json"))
