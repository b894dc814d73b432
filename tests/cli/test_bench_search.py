import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli.groups import bench
from amortes.errors import ConfigError

pytest.importorskip("botorch")
QUICK = ["search", "--dims", "1", "--points", "3", "--datasets", "1"]


def test_rows_as_json() -> None:
    result = CliRunner().invoke(bench, [*QUICK, "--points", "3,4", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["n"], row["method"]) for row in rows] == [
        (n, method) for n in (3, 4) for method in ("amortes", "optimize_acqf")
    ]


def test_other_weights_and_scores() -> None:
    result = CliRunner().invoke(bench, [*QUICK, "kernel-paper-1d", "--score", "logei"])
    assert result.exit_code == 0, result.output
    assert "within" in result.stdout


def test_gains_must_be_trained(fake_weights: tuple[Path, Path]) -> None:
    base = str(fake_weights[0])
    result = CliRunner().invoke(bench, [*QUICK, base])
    assert isinstance(result.exception, ConfigError)
    assert "no trained gains" in str(result.exception)
    assert CliRunner().invoke(bench, [*QUICK, base, "--score", "logei"]).exit_code == 0


def test_wrong_usage(tmp_path: Path) -> None:
    assert CliRunner().invoke(bench, ["search", "--dims", "2,x"]).exit_code == 2
    assert CliRunner().invoke(bench, ["search", "--score", "nei"]).exit_code == 2
    result = CliRunner().invoke(bench, [*QUICK, str(tmp_path / "none.safetensors")])
    assert isinstance(result.exception, ConfigError)
    assert "neither a file" in str(result.exception)
    result = CliRunner().invoke(bench, ["search", "--dims", "99"])
    assert isinstance(result.exception, ConfigError)


def test_help_lists_the_commands() -> None:
    assert "search" in CliRunner().invoke(bench, ["--help"]).output
