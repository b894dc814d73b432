import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.bench.latency import FULLY_BAYESIAN, LOGEI, OPTUNA, OURS, LatencyRow, Start
from amortes.cli import bench_latency
from amortes.cli.bench_latency import misses
from amortes.cli.groups import bench
from amortes.nets.kernel import KernelNetwork
from amortes.pretrained import weights_path
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained

QUICK = ["latency", "-d", "1", "--points", "4", "--repeats", "1"]


def row(method: str, ms: float = 100.0, times: float = 1.0, n: int = 50) -> LatencyRow:
    return LatencyRow(n=n, method=method, ms=ms, fit_ms=1.0, search_ms=ms - 1.0, times_ours=times)


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


@pytest.fixture(autouse=True)
def small(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_latency, "as_network", lambda weights, gains: network)
    start = Start(import_seconds=9.0, peak_mib=300.0)
    monkeypatch.setattr(bench_latency, "measure_start", lambda d, n: start)


def test_json_and_check() -> None:
    pytest.importorskip("botorch")
    result = CliRunner().invoke(bench, [*QUICK, "--json", "--check"])
    found = json.loads(result.stdout)
    assert [entry["method"] for entry in found["rows"]] == [OURS, LOGEI, "MAP GP + GIBBON", OPTUNA]
    assert found["start"] == {"import_seconds": 9.0, "peak_mib": 300.0}
    assert "import takes 9.0 s, wanted 3.0" in found["missed"]
    assert result.exit_code == 1


def test_the_table() -> None:
    pytest.importorskip("botorch")
    result = CliRunner().invoke(bench, QUICK)
    assert result.exit_code == 0, result.output
    assert "times ours" in result.stdout
    assert "import and load: 9 s, peak memory: 300 MiB" in result.stdout
    assert "Target missed: import" in result.stderr


def test_datasets_of_runs_on_a_problem() -> None:
    pytest.importorskip("botorch")
    options = ["latency", "--problem", "classic-branin", "--points", "4", "--repeats", "1"]
    found = json.loads(CliRunner().invoke(bench, [*options, "--json"]).stdout)
    assert found["d"] == 2
    assert [entry["n"] for entry in found["rows"]] == [4] * 4
    result = CliRunner().invoke(bench, ["latency", "--problem", "nothing"])
    assert result.exit_code != 0


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


def test_wrong_usage() -> None:
    assert CliRunner().invoke(bench, ["latency", "--points", "x"]).exit_code == 2
