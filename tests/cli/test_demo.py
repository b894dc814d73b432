from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli.demo import demo


def test_tables_and_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    output = tmp_path / "out" / "demo.png"
    result = CliRunner().invoke(demo, ["--evaluations", "8", "--seeds", "1", "-o", str(output)])
    assert result.exit_code == 0, result.output
    for words in ("amortes", "Optuna TPE", "random search", "after 8", f"Wrote {output}"):
        assert words in result.stdout.replace("\n", "")
    assert output.read_bytes().startswith(b"\x89PNG")


def test_wrong_usage() -> None:
    assert CliRunner().invoke(demo, ["--evaluations", "3"]).exit_code == 2
