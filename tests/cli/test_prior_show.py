from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.cli.console import EXIT_USAGE


@pytest.mark.parametrize(("prior", "name"), [("paper", "a.png"), ("paper-1d", "b.svg")])
def test_a_figure_is_written(tmp_path: Path, prior: str, name: str) -> None:
    target = tmp_path / "new" / name
    result = CliRunner().invoke(app, ["prior", "show", "--prior", prior, "-o", str(target)])
    assert result.exit_code == 0, result.output
    start = target.read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml")
    assert [p.name for p in target.parent.iterdir()] == [name]


def test_a_wrong_format_is_explained(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.foo"
    result = CliRunner().invoke(app, ["prior", "show", "-o", str(target)])
    assert result.exit_code == EXIT_USAGE
    assert not target.parent.exists()
