from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli.train_curves import curves
from amortes.errors import FileError
from amortes.training.loop import train
from tests.training.fake import fake_recipe


def test_figure_is_written(tmp_path: Path) -> None:
    train(tmp_path / "run", fake_recipe(steps=2))
    output = tmp_path / "new" / "curves.svg"
    result = CliRunner().invoke(curves, [str(tmp_path / "run"), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert output.read_text().startswith("<?xml")


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        CliRunner().invoke(curves, [str(tmp_path)], catch_exceptions=False)
