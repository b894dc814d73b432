from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.bench import prior_scores as module
from amortes.bench.prior_scores import read_traces
from amortes.bench.protocol import optimise
from amortes.bench.results import PlannedRun, ResultsFolder, run_csv
from amortes.cli.bench_report import pack, traces
from tests.bench.fake import Bowl, fake_method
from tests.bench.report.test_load import folder_of


def test_traces_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "make_problem", Bowl)
    run = PlannedRun(problem="bowl2", method="random", seed=0, iterations=4)
    records = optimise(Bowl(), fake_method("random"), seed=0, iterations=4)
    text = run_csv(run, Bowl(), records, version="1", commit="")
    ResultsFolder(tmp_path / "sweep").put(run, text)
    target = tmp_path / "t.npz"
    result = CliRunner().invoke(traces, [str(tmp_path / "sweep"), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert "1 traces" in result.output.replace("\n", "")
    assert read_traces(target)[0].X.shape == (4, 2)


def test_one_small_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", "branin,2,0.316,jes,0,2,,,,-0.4,0.8,,")
    target = tmp_path / "packed.csv.gz"
    result = CliRunner().invoke(pack, [str(folder), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert "1 runs" in result.output.replace("\n", "")
    assert target.exists()
