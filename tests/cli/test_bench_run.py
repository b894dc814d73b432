import json
import sys
import types
from pathlib import Path

import pytest
from click.testing import Result

from amortes.bench.problems.registry import PROBLEMS
from amortes.bench.suites import SUITES
from amortes.cli.bench_run import SUITES as NAMES
from amortes.cli.bench_run import _kind
from amortes.cli.console import EXIT_FAILED_CHECK, EXIT_USAGE
from amortes.cli.groups import bench
from amortes.errors import ConfigError, FileError
from tests.bench.fake import fake_method
from tests.cli.call import call

pytest.importorskip("botorch")


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry = types.ModuleType("registry")
    registry.method_factory = fake_method  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amortes.bench.methods.registry", registry)
    monkeypatch.setenv("AMORTES_TEST_FAIL", str(tmp_path / "fail"))


def invoke(*arguments: object) -> Result:
    return call(bench, "run", *arguments, "--workers", 1)


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--problems", "branin,hartmann4", "--methods", "random", "--iterations", 5]
    result = invoke(*options, "--seeds", "0-1", "--out", out, "--json")
    [row] = json.loads(result.stdout)
    assert (row["runs"], row["finished"], row["made"], row["failed"]) == (4, 4, 4, 0)
    lines = result.stderr.splitlines()
    assert lines[0].startswith("1/4 branin, random, seed 0: done; 0:0")
    assert len(Path(row["results"]).read_text().splitlines()) == 1 + 2 * (4 + 2)
    [row] = json.loads(invoke(*options, "--seeds", "0-2", "--out", out, "--json").stdout)
    assert (row["runs"], row["finished"], row["made"]) == (6, 6, 2)
    assert "finished" in invoke(*options, "--seeds", "0-2", "--out", out).stdout


def test_failures_are_shown_and_retried(tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    options = ["--suite", "mini", "--problems", "branin", "--methods", "failing,random"]
    options += ["--iterations", "4", "--out", str(tmp_path / "out")]
    result = invoke(*options)
    assert result.exit_code == EXIT_FAILED_CHECK
    assert "ZeroDivisionError: on purpose" in result.stderr
    assert "--retry-failed" in result.stderr
    (tmp_path / "fail").unlink()
    assert invoke(*options).exit_code == EXIT_FAILED_CHECK
    assert invoke(*options, "--retry-failed").exit_code == 0


def test_weights_that_have_changed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--problems", "branin", "--methods", "slow", "--iterations", "3"]
    options += ["--out", str(tmp_path / "out")]
    monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "old")
    invoke(*options, "--seeds", "0")
    monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "new")
    with pytest.raises(ConfigError, match=r"slow \(then old, now new\)"):
        invoke(*options, "--seeds", "0-1")


def test_wrong_use_is_found_before_anything_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options, message in (
        (["--out", out], "--suite or --problems"),
        (["--suite", "mini"], "--out"),
        (["--suite", "all", "--out", out], "mini"),
        (["--suite", "mini", "--methods", ",", "--out", out], "names with commas"),
        (["--suite", "mini", "--out", out, "--methods", "random", "--ray-address", "x"], "ray"),
    ):
        result = invoke(*options)
        assert result.exit_code == EXIT_USAGE
        assert message in result.stderr
    with pytest.raises(ConfigError, match="no 'magic'"):
        invoke("--suite", "mini", "--methods", "random,magic", "--out", out)
    with pytest.raises(ConfigError, match="no 'brannin' here"):
        invoke("--problems", "brannin", "--out", out)
    with pytest.raises(FileError, match="nope"):
        invoke("--suite", "mini", "--methods", "random,slow@nope", "--out", out)
    for problems, most in (("branin,ackley8", 8), ("branin,sklearn-forest-diabetes", 6)):
        options = ["--problems", problems, "--methods", "random", "--out", out]
        with pytest.raises(ConfigError, match=rf"has {most} initial points.* {most - 1} are too"):
            invoke(*options, "--iterations", most - 1)
    assert not out.exists()


def test_all_suites_are_offered() -> None:
    assert list(SUITES) == list(NAMES)


def test_one_large_table_of_each_size_is_loaded() -> None:
    kinds = {problem: _kind(problem) for problem in PROBLEMS}
    large = {kind for problem, kind in kinds.items() if problem.startswith(("hpo", "lcbench"))}
    spaces = {f"hpob-{space}" for space in ("5527", "5891", "7609", "5965", "5971")}
    assert large == {*spaces, "lcbench", "lcbench-fashion", "hpobench", "hpolib"}
    assert all(kind == problem for problem, kind in kinds.items() if kind not in large)
