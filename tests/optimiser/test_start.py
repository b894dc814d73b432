from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Optimizer, Space, minimize
from amortes.optimiser.start import entries

SPACE = Space({"x": Float(0, 1)})


def test_tables_are_results(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0]})
    frame.to_csv(tmp_path / "past.csv")
    for start in (frame, tmp_path / "past.csv", lambda space: str(tmp_path / "past.csv")):
        found = list(entries(start, SPACE))
        assert [(t.config, t.value) for t in found] == [({"x": 0.25}, 1.0), ({"x": 0.5}, 2.0)]


@pytest.mark.parametrize("start", [5, b"x", {"x": 0.5}, lambda space: 5])
def test_others_are_refused(start: Any) -> None:
    with pytest.raises(DataError, match="start: expected a list"):
        list(entries(start, SPACE))


def test_runs_start_from_tables(network: KernelNetwork, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0]})
    opt = Optimizer(SPACE, network=network, start=frame)
    assert (opt.past, opt.best.value) == (2, 1.0)
    result = minimize(
        lambda config: config["x"], SPACE, 1, network=network, start=frame, progress=False
    )
    assert [trial.value for trial in result.to_frame().itertuples()][:2] == [1.0, 2.0]
    assert result.n_trials == 1
