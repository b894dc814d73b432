import csv
import io
import math
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from amortes.errors import DataError, FileError, MissingExtraError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Optimizer, Ordinal, Space, Trial, minimize
from amortes.optimiser.table import (
    as_csv,
    entries,
    is_missing,
    read_results,
    to_frame,
)

SPACE = Space(
    {
        "lr": Float(1e-5, 1.0, log=True),
        "n": Int(1, 8),
        "act": Categorical(["relu", 'a,"b"', None, True, [1, 2]]),
        "width": Ordinal([16, 32, 64]),
        "epochs": 20,
    }
)


def test_the_table(tmp_path: Path) -> None:
    trials = [
        Trial(0, {"x": 0.1 + 0.2, "s": 'a,"b"', "b": True, "l": None}, "done", 1e-17),
        Trial(1, {"x": 1.0, "s": "c", "b": False, "l": None}, "failed", reason="exit code 1: x\ny"),
    ]
    rows = list(csv.DictReader(io.StringIO(as_csv(trials))))
    assert [float(row["x"]) for row in rows] == [0.1 + 0.2, 1.0]
    assert float(rows[0]["value"]) == 1e-17
    assert rows[0]["s"] == 'a,"b"'
    assert (rows[0]["b"], rows[0]["l"]) == ("true", "null")
    assert (rows[1]["status"], rows[1]["value"]) == ("failed", "")
    assert rows[1]["reason"] == "exit code 1: x\ny"
    assert as_csv([]) == "trial,status,value,reason\n"


def test_costs_and_violations_have_columns_where_there_are_any() -> None:
    trials = [
        Trial(0, {"x": 1.0}, "done", 2.0, cost=3.0, violation=-1.0),
        Trial(1, {"x": 2.0}, "failed", violation=0.5),
    ]
    lines = as_csv(trials).splitlines()
    assert lines[0] == "trial,status,value,cost,violation,x,reason"
    assert lines[1:] == ["0,done,2.0,3.0,-1.0,1.0,", "1,failed,,,0.5,2.0,"]


def written(folder: Path, text: str) -> Path:
    path = folder / "past.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_results_come_back(tmp_path: Path) -> None:
    """But trials under way, or taken back, are no results."""
    configs = [
        {"lr": 0.1 + 0.2, "n": 3, "act": act, "width": 32, "epochs": 20}
        for act in ["relu", 'a,"b"', None, True, [1, 2], "relu"]
    ]
    trials = [
        Trial(0, configs[0], "done", 1e-17, cost=2.0, violation=-1.0),
        Trial(1, configs[1], "failed", reason="exit code 1: x\ny"),
        Trial(2, configs[2], "failed", cost=1.5, violation=0.25, reason="too much"),
        Trial(3, configs[3], "done", -3.0),
        Trial(4, configs[4], "pending"),
        Trial(5, configs[5], "withdrawn"),
    ]
    assert read_results(written(tmp_path, as_csv(trials)), SPACE) == trials[:4]


def outcomes() -> list[Trial]:
    acts = ["relu", 'a,"b"', None, True, [1, 2]]
    configs = [{"lr": 0.3, "n": 3, "act": a, "width": 32, "epochs": 20} for a in acts]
    return [
        Trial(0, configs[0], "done", 1e-17, cost=2.0, violation=-1.0),
        Trial(1, configs[1], "failed", reason="exit code 1: x\ny"),
        Trial(2, configs[2], "failed", cost=1.5, violation=0.25, reason="too much"),
        Trial(3, configs[3], "done", -3.0),
        Trial(4, configs[4], "pending"),
    ]


def test_frames_have_typed_columns() -> None:
    frame = to_frame(outcomes(), SPACE)
    assert list(frame) == list(pd.read_csv(io.StringIO(as_csv(outcomes()))))
    assert frame["trial"].tolist() == [0, 1, 2, 3, 4]
    assert frame["value"].dtype == frame["cost"].dtype == "float64"
    assert frame["n"].dtype == frame["width"].dtype == "int64"
    assert frame["act"].tolist() == ["relu", 'a,"b"', "null", "true", "[1, 2]"]
    empty = to_frame([], SPACE)
    assert len(empty) == 0
    assert "lr" in empty


def test_frames_come_back_also_through_files(tmp_path: Path) -> None:
    frame = to_frame(outcomes(), SPACE)
    frame.to_csv(tmp_path / "trials.csv", index=False)
    frame.to_parquet(tmp_path / "trials.parquet")
    again = [pd.read_csv(tmp_path / "trials.csv"), pd.read_parquet(tmp_path / "trials.parquet")]
    files: list[Any] = [str(tmp_path / "trials.csv"), tmp_path / "trials.parquet"]
    for table in (frame, *files, *again):
        assert read_results(table, SPACE) == outcomes()[:4]


def test_native_values_and_gaps_in_a_frame() -> None:
    space = Space({"n": Int(1, 9), "b": Categorical([True, False]), "c": Categorical([1.0, "2"])})
    frame = pd.DataFrame(
        {"n": [1.0, 2.0], "b": [True, False], "c": [1, 2], "value": [0.5, None], "more": [0, 0]}
    )
    first, second = read_results(frame, space)
    assert first.config == {"n": 1, "b": True, "c": 1.0}
    assert second.config == {"n": 2, "b": False, "c": "2"}
    assert (first.status, second.status) == ("done", "failed")
    nullable = frame.convert_dtypes()
    assert read_results(nullable, space) == [first, second]


class Colour(Enum):
    RED = 1
    BLUE = 2


def test_choices_that_are_not_json(tmp_path: Path) -> None:
    space = Space(
        {"c": Categorical(Colour), "t": Categorical([(1, 2), "z", len]), "x": Float(0, 1)}
    )
    trials = [
        Trial(0, {"c": Colour.RED, "t": (1, 2), "x": 0.5}, "done", 1.0),
        Trial(1, {"c": Colour.BLUE, "t": len, "x": 0.25}, "done", 2.0),
    ]
    frame = to_frame(trials, space)
    assert frame["c"].tolist() == ["Colour.RED", "Colour.BLUE"]
    assert read_results(frame, space) == trials
    assert read_results(written(tmp_path, as_csv(trials)), space) == trials
    native = pd.DataFrame({"c": [Colour.RED], "t": [(1, 2)], "x": [0.5], "value": [1.0]})
    assert read_results(native, space) == trials[:1]


def test_pending_rows_with_a_value_are_results() -> None:
    space = Space({"x": Float(0, 1)})
    frame = pd.DataFrame({"x": [0.1, 0.2], "status": "pending", "value": [None, 3.0]})
    (result,) = read_results(frame, space)
    assert (result.status, result.value, result.config) == ("done", 3.0, {"x": 0.2})


def test_frames_that_are_wrong() -> None:
    space = Space({"x": Float(0, 1)})
    with pytest.raises(DataError, match="the DataFrame has no column value"):
        read_results(pd.DataFrame({"x": [0.1]}), space)
    with pytest.raises(DataError, match=r"the DataFrame, row 7: x: 3.0 is outside"):
        read_results(pd.DataFrame({"x": [0.1, 3], "value": [1, 2]}, index=[3, 7]), space)
    with pytest.raises(DataError, match=r"row 0: x: missing from"):
        read_results(pd.DataFrame({"x": [None], "value": [1]}), space)
    with pytest.raises(DataError, match="parameter named trial"):
        to_frame([], Space({"trial": Float(0, 1)}))


def test_tables_of_other_people(tmp_path: Path) -> None:
    text = "\ufeffdate,width,act,n,lr,value\ntoday,16,relu,2,1e-3,0.5\ntoday,64,null,8.0,1,nan\n"
    first, second = read_results(written(tmp_path, text), SPACE)
    assert first.config == {"lr": 1e-3, "n": 2, "act": "relu", "width": 16, "epochs": 20}
    assert (first.status, first.value) == ("done", 0.5)
    assert (second.status, second.config["act"], second.config["n"]) == ("failed", None, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column value, lr, n, act, width"),
        ("lr,n,act,value\n", "no column width. A table needs"),
        ("lr,n,act,width,value\n0.1,2,relu,16,1\n0.1,2,tanh,16,1\n", "line 3: act: 'tanh' is not"),
        ("lr,n,act,width,value\nx,2,relu,16,1\n", "line 2: lr: 'x' is not a number"),
        ("lr,n,act,width,value\n7,2,relu,16,1\n", "line 2: lr: 7"),
        ("lr,n,act,width,value\n0.1,2.5,relu,16,1\n", "line 2: n: 2.5"),
        ("lr,n,act,width,value\n0.1,2,relu,16\n", "line 2: the value is missing; write nan"),
        ("lr,n,act,width,value,cost\n0.1,2,relu,16,1,-1\n", "line 2: .*cost"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_results(written(tmp_path, text), SPACE)


def test_parameters_named_like_a_column_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="a parameter named value clashes with"):
        read_results(written(tmp_path, "value,value\n0.5,1\n"), Space({"value": Float(0, 1)}))


def test_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="cannot read"):
        read_results(path, SPACE)
    with pytest.raises(FileError, match="cannot read"):
        read_results(tmp_path / "missing.csv", SPACE)
    for name in ("past.parquet", "missing.parquet"):
        (tmp_path / "past.parquet").write_bytes(b"PAR1 no table")
        with pytest.raises(FileError, match="cannot read"):
            read_results(tmp_path / name, SPACE)


LINE = Space({"x": Float(0, 1)})


def test_tables_are_results(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0]})
    frame.to_csv(tmp_path / "past.csv")
    for start in (frame, tmp_path / "past.csv", lambda space: str(tmp_path / "past.csv")):
        found = list(entries(start, LINE))
        assert [(t.config, t.value) for t in found] == [({"x": 0.25}, 1.0), ({"x": 0.5}, 2.0)]


@pytest.mark.parametrize("start", [5, b"x", {"x": 0.5}, lambda space: 5])
def test_others_are_refused(start: Any) -> None:
    with pytest.raises(DataError, match="start: expected a list"):
        list(entries(start, LINE))


def test_runs_start_from_tables(network: KernelNetwork, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0]})
    opt = Optimizer(LINE, network=network, start=frame)
    assert (opt.past, opt.best.value) == (2, 1.0)
    result = minimize(
        lambda config: config["x"], LINE, 1, network=network, start=frame, progress=False
    )
    assert [trial.value for trial in result.to_frame().itertuples()][:2] == [1.0, 2.0]
    assert result.n_trials == 1


def test_types_survive_gaps() -> None:
    gaps: dict[str, Any] = {"n": Int(1, 2), "b": Categorical([True, False]), "x": Float(0, 1)}
    space = Space({"kind": Categorical({"u": {"n": gaps["n"]}, "v": {"b": gaps["b"]}, "w": gaps})})
    configs: list[dict[str, Any]] = [{"kind": "u", "n": 1}, {"kind": "v", "b": True}]
    frame = to_frame([Trial(i, config) for i, config in enumerate(configs)], space)
    types = [str(frame[name].dtype) for name in ("n", "b", "x", "value")]
    assert types == ["Int64", "boolean", "float64", "float64"]
    assert frame["n"].tolist() == [1, pd.NA]


def test_what_is_missing() -> None:
    for value in (None, math.nan, np.nan, pd.NA, "", np.float64("nan")):
        assert is_missing(value)
    present: list[object] = [0, False, "nan", [], 0.0, "x"]
    assert not any(map(is_missing, present))


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": [0.5], "value": [1.0]})
    assert len(list(entries(frame, LINE))) == 1
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert is_missing(None)
    assert not is_missing(3)
    with pytest.raises(MissingExtraError, match="pip install"):
        to_frame([], LINE)
