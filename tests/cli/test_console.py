import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from amortes.cli.console import EXIT_USAGE, figure_option, format_value, show_rows

ROWS: list[dict[str, Any]] = [
    {"name": "a", "ms_per_path": 1.23456},
    {"name": "b", "ms_per_path": None},
]


def test_rows_as_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(ROWS, as_json=False, title="Times")
    table = capsys.readouterr().out
    assert "ms per path" in table
    assert "1.235" in table
    show_rows(ROWS, as_json=True)
    assert json.loads(capsys.readouterr().out) == ROWS


def test_values_are_short() -> None:
    assert [format_value(v) for v in (True, None, 12, 0.000012345, "x")] == [
        "yes", "-", "12", "1.234e-05", "x",
    ]  # fmt: skip


def test_formats_of_figures() -> None:
    @click.command()
    @figure_option("out/a.png")
    def draw(output: Path) -> None:
        click.echo(output)

    assert CliRunner().invoke(draw).stdout == "out/a.png\n"
    for name in ("a.svg", "a.PDF", "a"):
        assert CliRunner().invoke(draw, ["-o", name]).stdout == f"{name}\n"
    wrong = CliRunner().invoke(draw, ["-o", "a.foo"])
    assert wrong.exit_code == EXIT_USAGE
    assert "a.foo must end in .png, .svg or .pdf" in wrong.stderr
