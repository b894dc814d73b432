import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli.bench_report import report
from amortes.errors import ConfigError, FileError


def test_one_figure(sweep: Path, tmp_path: Path) -> None:
    arguments = [str(sweep), "--figure", "regret-gp", "--out", str(tmp_path)]
    result = CliRunner().invoke(report, arguments)
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 3
    names = {path.name for path in tmp_path.rglob("*.*")}
    assert names == {"regret-gp.png", "regret-gp.svg", "regret-gp.csv"}


def test_one_section(sweep: Path, tmp_path: Path) -> None:
    arguments = [str(sweep), "--only", "noise", "--out", str(tmp_path), "--no-anchors"]
    result = CliRunner().invoke(report, arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / "noise.png").is_file()
    assert "paper:" not in (tmp_path / "data" / "noise.csv").read_text()


def test_the_default_folder_is_beside_the_results(sweep: Path) -> None:
    result = CliRunner().invoke(report, [str(sweep / "results.csv"), "--only", "coverage"])
    assert result.exit_code == 0, result.output
    assert (sweep / "report" / "tables" / "coverage.md").is_file()


def test_commands_that_need_no_report_load_no_pandas() -> None:
    code = (
        "import sys, amortes.cli.bench_report, amortes.cli.optimize; print('pandas' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("option", "there"), [("--only", "families, regret"), ("--figure", "hpob-ranks")]
)
def test_wrong_names_list_the_right_ones(sweep: Path, option: str, there: str) -> None:
    result = CliRunner().invoke(report, [str(sweep), option, "figure 1"])
    assert isinstance(result.exception, ConfigError)
    assert there in str(result.exception)


def test_folders_without_results(tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(report, [str(tmp_path)]).exception, FileError)
