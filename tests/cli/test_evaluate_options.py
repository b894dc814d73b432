import json

import pytest

from amortes.cli.evaluate_options import show_scores

ROWS = [
    {"network": "learned", "d": 1, "excess": 0.12345, "ceiling": 0.9},
    {"network": "learned", "d": "all", "excess": 0.2, "ceiling": 0.9},
    {"network": "closed form", "d": 1, "excess": 0.6789, "ceiling": 0.9},
]


def test_a_table_for_each_value_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    show_scores(ROWS, "network", "w", as_json=False)
    text = capsys.readouterr().out
    assert text.index("w: learned") < text.index("0.123 ")
    assert text.index("0.2 ") < text.index("w: closed form") < text.index("0.679 ")
    assert "ceiling" not in text


def test_json_has_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    show_scores(ROWS, "network", "w", as_json=True)
    assert json.loads(capsys.readouterr().out) == ROWS
