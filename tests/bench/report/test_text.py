import math

from amortes.bench.report.text import seconds, span, times, with_error


def test_numbers_as_words() -> None:
    assert with_error(-1.234, 0.056) == "-1.23 ± 0.06"
    assert with_error(1.0, math.nan, 3) == "1.000"
    assert with_error(math.nan, 1.0) == ""
    assert [seconds(x) for x in (123.4, 1.26, 0.0123, 0.0, math.nan)] == [
        *("123", "1.3", "0.012", "0", ""),
    ]
    assert [times(x) for x in (3.14, 196.2, math.nan)] == ["3.1×", "196×", ""]
    assert (span([3, 3]), span([5, 3, 4])) == ("3", "3-5")
