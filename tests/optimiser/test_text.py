from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from amortes.errors import ConfigError
from amortes.optimiser.text import (
    config_text,
    counted,
    html_table,
    in_words,
    interval,
    is_plain,
    number,
    percent,
    plain,
    printable,
    shortened,
)


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "x", [1, [2]], {"a": None}])
def test_json_values_are_plain(value: Any) -> None:
    assert plain(value, "v") is value


class Size(StrEnum):
    SMALL = "s"


@pytest.mark.parametrize(
    "value", [(1, 2), {1: 2}, float("nan"), object(), [(1,)], np.ones(2), Size.SMALL, [Size.SMALL]]
)
def test_other_values_are_not(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"v .* is not a JSON value"):
        plain(value, "v")


def test_texts_are_the_same_in_another_process() -> None:
    class Thing:
        pass

    assert in_words(Thing()) == in_words(Thing())
    assert in_words(Size.SMALL) == "<Size.SMALL: 's'>"
    assert in_words((1, "a")) == "(1, 'a')"
    assert in_words(Size) == "Size"
    assert in_words(is_plain) == "is_plain"
    assert in_words(abs) == "abs"


def test_numbers_and_others() -> None:
    assert number(0.123456789) == "0.12346"
    assert number(1234567.0, 3) == "1.23e+06"
    assert number(7) == "7"
    assert number(None) == "None"
    assert percent(0.9) == "90%"
    assert percent(0.995) == "99.5%"


def test_the_ends_of_an_interval_differ() -> None:
    assert interval(0.25, 0.75) == "0.25 to 0.75"
    assert interval(0.2, 0.2000000012, "and", 4) == "0.2 and 0.200000001"
    assert interval(1.0, 1.0) == "1 to 1"
    assert interval(1.0, 1.0 + 1e-15, digits=4) == "1 to 1"


def test_long_values_are_cut() -> None:
    assert len(shortened("x" * 500)) == 60
    assert shortened("x" * 60) == "x" * 60


def test_configs_in_a_line() -> None:
    assert config_text({"lr": 1e-3, "act": "relu", "sizes": [1, 2]}) == (
        "lr=0.001, act=relu, sizes=[1, 2]"
    )


def test_what_cannot_be_encoded_is_replaced() -> None:
    assert printable("a\ud800b") == "a?b"
    config_text({"\udcff": "\ud800"}).encode()
    html_table([("\udcff", "\ud800")], title="\udcff").encode()


def test_tables_are_escaped() -> None:
    table = html_table([("<a>", 1.0), ("x & y", "z")], title="<script>")
    assert "<script>" not in table
    assert "&lt;a&gt;" in table
    assert "x &amp; y" in table
    assert table.count("<tr>") == 2


def test_counts_have_plurals() -> None:
    assert (counted(1, "task"), counted(2, "task")) == ("1 task", "2 tasks")
