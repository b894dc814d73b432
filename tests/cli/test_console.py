import json
from typing import Any

import pytest

from amortes.cli.console import format_value, show_rows

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
