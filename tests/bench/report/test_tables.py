import csv
import io
import math

import pytest

from amortes.bench.report.tables import (
    NO_BREAK,
    Table,
    bold,
    counted,
    seconds,
    times,
    with_error,
)

TABLE = Table(
    name="t", title="A < B", columns=["method", "a|b"], rows=[["x & y", bold("1, 2")], ["z", ""]]
)


def test_markdown() -> None:
    assert TABLE.markdown().splitlines() == [
        "**A < B**",
        "",
        "| method | a\\|b |",
        "|---|---:|",
        "| x & y | **1, 2** |",
        "| z |  |",
    ]


def test_html_is_escaped() -> None:
    text = TABLE.html()
    assert "<caption>A &lt; B</caption>" in text
    row = '<th scope="row" class="text">x &amp; y</th><td><strong>1, 2</strong></td>'
    assert row in text


def test_text_is_on_the_left_and_numbers_on_the_right() -> None:
    table = Table(
        name="t",
        title="t",
        columns=["a", "8-D", "c"],
        rows=[["1", "-1.0 ± 0.1", "yes"], ["2", "", ""], ["3", bold("+2"), bold("no")]],
    )
    assert "|---|---:|---|" in table.markdown()
    assert '<td>-1.0 ± 0.1</td><td class="text">yes</td>' in table.html()
    assert f">8{NO_BREAK}D</th>" in table.html()


def test_csv_round_trip() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows == [["method", "a|b"], ["x & y", "1, 2"], ["z", ""]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(123.4, "123"), (12.34, "12"), (1.234, "1.2"), (0.1234, "0.12"), (0.00123, "0.0012"),
     (0.0, "0"), (1e-7, "0.0000"), (math.nan, "")],
)  # fmt: skip
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


def test_numbers() -> None:
    assert [times(x) for x in (196.4, 3.14159, 0.5, math.nan)] == ["196×", "3.1×", "0.50×", ""]
    assert with_error(-1.234, 0.056) == "-1.23 ± 0.06"
    assert with_error(1.0, math.nan, 1) == "1.0"
    assert with_error(math.nan, 1.0) == ""
    assert [counted(n, "task") for n in (1, 2)] == ["1 task", "2 tasks"]
