import math
import sys

import numpy as np
import pandas as pd
import pytest

from amortes.errors import MissingExtraError
from amortes.optimiser.frame import is_frame, is_missing, new_frame, records


def test_types_survive_gaps() -> None:
    frame = new_frame({"n": [1, None], "b": [None, True], "x": [None, 0.5], "none": [None, None]})
    assert [str(t) for t in frame.dtypes] == ["Int64", "boolean", "float64", "float64"]
    assert frame["n"].tolist() == [1, pd.NA]


def test_what_is_missing() -> None:
    for value in (None, math.nan, np.nan, pd.NA, "", np.float64("nan")):
        assert is_missing(value)
    present: list[object] = [0, False, "nan", [], 0.0, "x"]
    assert not any(map(is_missing, present))


def test_rows() -> None:
    frame = pd.DataFrame({"a": [1, 2], 3: ["x", None]}, index=["p", "q"])
    rows = list(records(frame))
    assert rows[0] == ("p", {"a": 1, "3": "x"})
    assert rows[1][0] == "q"
    assert list(records(frame.iloc[:0])) == []


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1]})
    assert is_frame(frame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert not is_frame(frame)
    assert is_missing(None)
    assert not is_missing(3)
    with pytest.raises(MissingExtraError, match="pip install"):
        new_frame({"a": [1]})
