import dataclasses
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from amortes.bench.maximisers import comparison
from amortes.bench.maximisers.ensemble import DEFAULT_ENSEMBLE, Ensemble, run_candidate
from amortes.cli.prior_search import bench, ensemble
from amortes.errors import ConfigError, FileError

QUICK_BENCH = ["--dims", "1,2", "--paths", "12", "--reference-budget", "2"]
# Seed 606 happens to draw eight quick candidates.
QUICK_ENSEMBLE = ["--dim", "1", "--paths", "5", "--candidates", "8", "--seed", "606"]


@pytest.fixture
def quick_file(tmp_path: Path) -> Path:
    member = dataclasses.replace(DEFAULT_ENSEMBLE.members[0], num_samples=20, n_iterations_max=10)
    Ensemble(members=(member,)).save(tmp_path / "quick.json")
    return tmp_path / "quick.json"


def test_bench_rows_as_json(quick_file: Path) -> None:
    result = CliRunner().invoke(
        bench, [*QUICK_BENCH, "--ensemble", str(quick_file), "--ensemble-paths", "3", "--json"]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["d"], row["method"], row["paths"]) for row in rows] == [
        (d, method, paths)
        for d in (1, 2)
        for method, paths in (("newton", 12), ("newton", 3), ("ensemble", 3))
    ]
    assert all(row["solved"] == 1.0 for row in rows if row["method"] == "newton")


def test_bench_table_with_the_built_in_ensemble() -> None:
    result = CliRunner().invoke(
        bench, ["--dims", "1", "--paths", "2", "--reference-budget", "1", "--ensemble-paths", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "ms per path" in result.stdout
    assert "ensemble" in result.stdout


@pytest.mark.parametrize(("check", "exit_code"), [(["--check"], 1), ([], 0)])
def test_a_missed_target_fails_the_check_only(
    check: list[str], exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "PROMISED", (0.0, 0.5))
    result = CliRunner().invoke(bench, [*QUICK_BENCH, "--ensemble-paths", "0", *check])
    assert result.exit_code == exit_code
    assert ("misses its target: d=2" in result.stderr) == bool(check)


def test_a_met_target_passes_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PROMISED", (1e6, 0.5))
    result = CliRunner().invoke(bench, [*QUICK_BENCH, "--ensemble-paths", "0", "--check"])
    assert result.exit_code == 0, result.output


def test_default_dimensions_are_those_of_the_prior() -> None:
    options = ["--paths", "1", "--reference-budget", "1", "--ensemble-paths", "0", "--json"]
    result = CliRunner().invoke(bench, ["--prior", "paper", *options])
    assert [row["d"] for row in json.loads(result.stdout)] == [1, 2, 4, 6]


@pytest.mark.parametrize("dims", ["", "1,", "two", "0,1", "1;2", "-1"])
def test_wrong_dimensions_are_wrong_usage(dims: str) -> None:
    result = CliRunner().invoke(bench, ["--dims", dims])
    assert result.exit_code == 2
    assert "such as 2,6" in result.stderr


def test_known_errors_come_before_any_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(bench, ["--dims", "2,7", "--prior", "paper"])
    assert isinstance(result.exception, ConfigError)
    result = CliRunner().invoke(bench, ["--ensemble", str(tmp_path / "none.json")])
    assert isinstance(result.exception, FileError)


def test_ensemble_is_built_saved_and_reported(tmp_path: Path) -> None:
    output = tmp_path / "ensemble.json"
    arguments = [*QUICK_ENSEMBLE, "--output", str(output)]
    result = CliRunner().invoke(ensemble, arguments)
    assert result.exit_code == 0, result.output
    members = Ensemble.load(output).members
    assert f"Ensemble of {len(members)} for d=1" in result.stdout
    assert "held-out" in result.stdout
    built = json.loads(output.read_text())["built"]
    assert built["candidates"] == 8
    assert built["regret"] >= 0
    assert built["ms_per_path"] == pytest.approx(sum(built["member_ms_per_path"]))


def test_ensemble_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, work = tmp_path / "ensemble.json", tmp_path / "work"
    arguments = [*QUICK_ENSEMBLE, "--output", str(output), "--work", str(work), "--json"]
    calls = 0

    def interrupted(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return run_candidate(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("amortes.cli.prior_search.run_candidate", interrupted)
    assert CliRunner().invoke(ensemble, arguments).exit_code != 0
    done = {file: file.stat().st_mtime_ns for file in work.iterdir()}
    assert len(done) == 3
    assert not output.exists()
    result = CliRunner().invoke(ensemble, arguments)
    assert result.exit_code == 0, result.output
    assert len(list(work.iterdir())) == 8
    assert done == {file: file.stat().st_mtime_ns for file in done}
    assert json.loads(result.stdout) == json.loads(output.read_text())


@pytest.mark.parametrize(
    "arguments", [["--paths", "4"], ["--candidates", "0"], ["--max-seconds", "0"], ["--seed", "-1"]]
)
def test_wrong_numbers_are_wrong_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(ensemble, arguments).exit_code == 2


@pytest.mark.parametrize("command", [bench, ensemble])
def test_help_teaches_with_examples(command: click.Command) -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
