from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from amortes.cli import evaluate_figure
from amortes.cli.evaluate_figure import figure
from amortes.errors import ConfigError
from amortes.oracles.brute_force import BruteForceConfig


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(figure, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_figure_is_written(
    fake_weights: tuple[Path, Path],
    tmp_path: Path,
    small_oracles: BruteForceConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluate_figure, "BruteForceConfig", lambda: small_oracles)
    output = tmp_path / "new" / "figure.svg"
    assert "Wrote" in invoke(fake_weights[1], "--context", "4", "-o", output).stdout
    assert output.read_text().startswith("<?xml")


def test_it_needs_gains(fake_weights: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no trained gains"):
        invoke(fake_weights[0], "-o", tmp_path / "figure.svg")


def test_a_wrong_format_is_found_before_the_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(figure, ["absent", "-o", str(tmp_path / "x.foo")])
    assert result.exit_code == click.UsageError.exit_code
    assert "must end in .png" in result.output
