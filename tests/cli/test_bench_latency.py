import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.bench.latency import FULLY_BAYESIAN, LOGEI, OPTUNA, OURS, SCRATCH, Row, Start
from amortes.cli import bench_latency
from amortes.cli.bench_latency import misses
from amortes.cli.groups import bench
from amortes.errors import ConfigError
from amortes.nets.kernel import KernelNetwork
from amortes.pretrained import weights_path
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained

QUICK = ["latency", "-d", "1", "--points", "4", "--repeats", "1"]


def row(method: str, ms: float = 100.0, times: float = 1.0, n: int = 50) -> Row:
    return {"n": n, "method": method, "ms": ms, "times_ours": times}


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


@pytest.fixture
def small(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_latency, "as_network", lambda weights, gains: network)
    start = Start(import_seconds=9.0, peak_mib=300.0)
    monkeypatch.setattr(bench_latency, "measure_start", lambda d, n: start)


@pytest.mark.usefixtures("small")
def test_json_and_check() -> None:
    pytest.importorskip("botorch")
    result = CliRunner().invoke(bench, [*QUICK, "--json", "--check"])
    found = json.loads(result.stdout)
    methods = [OURS, SCRATCH, LOGEI, "MAP GP + GIBBON", OPTUNA]
    assert [entry["method"] for entry in found["rows"]] == methods
    assert found["start"] == {"import_seconds": 9.0, "peak_mib": 300.0}
    assert "import takes 9.0 s, wanted 3.0" in found["missed"]
    assert result.exit_code == 1


@pytest.mark.usefixtures("small")
def test_the_table() -> None:
    pytest.importorskip("botorch")
    result = CliRunner().invoke(bench, QUICK)
    assert result.exit_code == 0, result.output
    assert "times ours" in result.stdout
    assert "import and load: 9 s, peak memory: 300 MiB" in result.stdout
    assert "Target missed: import" in result.stderr


@pytest.mark.usefixtures("small")
def test_datasets_of_runs_on_a_problem() -> None:
    pytest.importorskip("botorch")
    options = ["latency", "--problem", "classic-branin", "--points", "4", "--repeats", "1"]
    found = json.loads(CliRunner().invoke(bench, [*options, "--json"]).stdout)
    assert found["d"] == 2
    assert [entry["n"] for entry in found["rows"]] == [4] * 5
    result = CliRunner().invoke(bench, ["latency", "--problem", "nothing"])
    assert result.exit_code != 0


@pytest.mark.usefixtures("small")
def test_other_weights_by_name(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botorch")
    loaded: list[Path] = []

    def as_network(weights: Path, *, gains: bool) -> KernelNetwork:
        loaded.append(weights)
        return network

    monkeypatch.setattr(bench_latency, "as_network", as_network)
    result = CliRunner().invoke(bench, [*QUICK, "kernel-paper", "--json"])
    assert result.exit_code == 0, result.output
    assert loaded == [weights_path("kernel-paper")]
    assert json.loads(result.stdout)["start"] is None


@pytest.mark.usefixtures("small")
def test_targets() -> None:
    good = [
        row(OURS, ms=25.0),
        row(LOGEI, times=12.1),
        row(OPTUNA, times=3.0),
        row(FULLY_BAYESIAN, times=100.0),
    ]
    assert misses(good, Start(import_seconds=2.0, peak_mib=500.0)) == []
    assert misses([row(OURS, ms=300.0, n=200)], None) == []
    bad = [
        row(OURS, ms=26.0),
        row(LOGEI, times=11.9),
        row(OPTUNA, times=2.9),
        row(FULLY_BAYESIAN, times=99.0),
    ]
    assert misses(bad, Start(import_seconds=2.0, peak_mib=2000.0)) == [
        "26 ms at n = 50, wanted at most 25",
        "11.9 times faster than MAP GP + LogEI at n = 50, wanted 12",
        "2.9 times faster than Optuna's GP at n = 50, wanted 3",
        "99.0 times faster than fully Bayesian GP + JES at n = 50, wanted 100",
        "peak memory is 2000 MiB, wanted 1024",
    ]


@pytest.mark.usefixtures("small")
def test_wrong_usage() -> None:
    assert CliRunner().invoke(bench, ["latency", "--points", "x"]).exit_code == 2


pytest.importorskip("botorch")
SEARCH = ["search", "--dims", "1", "--points", "3", "--datasets", "1"]


def test_rows_as_json() -> None:
    result = CliRunner().invoke(bench, [*SEARCH, "--points", "3,4", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["n"], row["method"]) for row in rows] == [
        (n, method) for n in (3, 4) for method in ("amortes", "optimize_acqf")
    ]


def test_other_weights_and_scores() -> None:
    result = CliRunner().invoke(bench, [*SEARCH, "kernel-paper-1d", "--score", "logei"])
    assert result.exit_code == 0, result.output
    assert "within" in result.stdout


def test_gains_must_be_trained(fake_weights: tuple[Path, Path]) -> None:
    base = str(fake_weights[0])
    result = CliRunner().invoke(bench, [*SEARCH, base])
    assert isinstance(result.exception, ConfigError)
    assert "no trained gains" in str(result.exception)
    assert CliRunner().invoke(bench, [*SEARCH, base, "--score", "logei"]).exit_code == 0


def test_wrong_usage_of_search(tmp_path: Path) -> None:
    assert CliRunner().invoke(bench, ["search", "--dims", "2,x"]).exit_code == 2
    assert CliRunner().invoke(bench, ["search", "--score", "nei"]).exit_code == 2
    result = CliRunner().invoke(bench, [*SEARCH, str(tmp_path / "none.safetensors")])
    assert isinstance(result.exception, ConfigError)
    assert "neither a file" in str(result.exception)
    result = CliRunner().invoke(bench, ["search", "--dims", "99"])
    assert isinstance(result.exception, ConfigError)


def test_help_lists_the_commands() -> None:
    assert "search" in CliRunner().invoke(bench, ["--help"]).output
