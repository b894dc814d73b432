import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from amortes.cli.console import (
    EXIT_USAGE,
    figure_option,
    format_value,
    parse_cells,
    parse_names,
    parse_ranges,
    parse_sizes,
    show_rows,
)

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


def parse(parser: Callable[..., Any], text: str | None) -> Any:
    return parser(click.Context(click.Command("x")), click.Option(["--dims"]), text)


@pytest.mark.parametrize(
    ("parser", "text", "found"),
    [
        (parse_names, "jes", ("jes",)),
        (parse_names, " logei, jes,,logei,jes ", ("logei", "jes")),
        (parse_sizes, "2,6", (2, 6)),
        (parse_sizes, " 12", (12,)),
        (parse_cells, "1:5,4:20", [(1, 5), (4, 20)]),
        (parse_ranges, "3", (3,)),
        (parse_ranges, "0,7-9,4,8", (0, 4, 7, 8, 9)),
    ],
)
def test_lists(parser: Callable[..., Any], text: str, found: object) -> None:
    assert parse(parser, text) == found
    assert len(parse(parser, None)) == 0


@pytest.mark.parametrize(
    ("parser", "texts"),
    [
        (parse_names, ("", ",", " ")),
        (parse_sizes, ("", "1,", "two", "0,1", "1;2", "-1", "1.5")),
        (parse_cells, ("", "1", "1:2:3", "a:b", "1:5,1:0", "1:-2", "0:5")),
        (parse_ranges, ("", "x", "1-", "-2", "4-1", "1,,2")),
    ],
)
def test_what_is_no_list(parser: Callable[..., Any], texts: tuple[str, ...]) -> None:
    for text in texts:
        with pytest.raises(click.BadParameter):
            parse(parser, text)
