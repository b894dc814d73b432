import json
import sys
import types
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner, Result

import amortes
from amortes.bench import evaluation
from amortes.bench.prior_scores import Trace, write_traces
from amortes.cli.console import EXIT_FAILED_CHECK, EXIT_USAGE
from amortes.cli.evaluate_bo import bo, prior
from amortes.errors import FileError
from amortes.training.export import export
from amortes.training.loop import train
from amortes.training.run import TrainingRun
from tests.bench.fake import fake_method
from tests.cli.call import call
from tests.training.fake import fake_recipe


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "base", fake_recipe(steps=2))
    export(TrainingRun.open(folder / "base"), folder / "tiny.safetensors")
    return folder / "tiny.safetensors"


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def method_factory(name: str) -> Any:
        def broken(problem: Any, seed: int) -> Any:
            raise ZeroDivisionError("on purpose")

        return broken if name == "broken" else fake_method("random")

    registry = types.ModuleType("registry")
    registry.method_factory = method_factory  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amortes.bench.methods.registry", registry)
    monkeypatch.setenv("AMORTES_CACHE", str(tmp_path / "cache"))


def invoke(*arguments: object) -> Result:
    return call(bo, *arguments, "--workers", 1)


SMALL = ("--dims", "1,2", "--noises", "0.1", "--functions", "2", "--evaluations", "4")


def test_a_table_for_each_cell_and_over_all(weights: Path, tmp_path: Path) -> None:
    rows = json.loads(invoke(weights, *SMALL, "--json").stdout)
    assert [(row["d"], row["noise"]) for row in rows[::6]] == [
        ("1", "0.1"),
        ("2", "0.1"),
        ("all", "all"),
    ]
    assert [r["method"] for r in rows[:6]] == ["pes", "mes", "jes", "logei", "map-logei", "random"]
    assert rows[-1]["functions"] == 4
    assert {"regret_2", "error_2", "regret_4", "error_4", "seconds"} <= rows[-1].keys()
    assert rows[-1]["difference"] == pytest.approx(rows[-1]["regret_4"] - rows[-3]["regret_4"])
    again = invoke(weights, *SMALL)
    assert again.stderr == ""  # nothing was run
    for word in ("after 4", " ±", "difference", "wins", "tiny.safetensors on prior tiny"):
        assert word in again.stdout
    assert "…" not in again.stdout
    assert len(again.stdout.splitlines()) == 1 + 3 + 18 + 1  # no row is wrapped
    assert len(list((tmp_path / "cache" / "bo").iterdir())) == 2


def test_runs_of_other_code_are_pointed_out_once(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (*SMALL, "--methods", "jes,random", "--json")
    for module in (sys.modules["amortes.bench.sweep"], evaluation):
        monkeypatch.setattr(module, "commit", lambda: "0ld")
    assert "other code" not in invoke(weights, *options).stderr
    monkeypatch.setattr(evaluation, "commit", lambda: "new")
    result = invoke(weights, *options)
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("Of 8 runs, 8 are of other code than that of now")
    assert line.endswith(f"8 of amortes {amortes.__version__}, commit 0ld")


def test_a_failing_method_is_shown(weights: Path) -> None:
    result = invoke(weights, *SMALL, "--methods", "broken,random")
    assert result.exit_code == EXIT_FAILED_CHECK
    assert "ZeroDivisionError: on purpose" in result.stderr


def test_wrong_use_is_explained(weights: Path, tmp_path: Path) -> None:
    for option, value in (("--noises", "a"), ("--noises", "-1"), ("--dims", "0"), ("--dims", "x")):
        result = invoke(weights, option, value)
        assert result.exit_code == EXIT_USAGE
        assert option in result.stderr
    with pytest.raises(FileError, match="missing"):
        invoke(tmp_path / "missing.safetensors")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rng = torch.Generator().manual_seed(0)
    traces = []
    for problem, family in (("a", "f"), ("b", "f"), ("c", "g"), ("d", "g")):
        X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
        y = (5.0 * X).sin().sum(1)
        traces.append(
            Trace(problem=problem, family=family, method="m", seed=0, noise_sd=0.0, X=X, y=y)
        )
    write_traces(tmp_path / "traces.npz", traces)
    return tmp_path / "traces.npz"


def invoke_prior(*arguments: object) -> Result:
    return CliRunner().invoke(prior, [str(a) for a in arguments])


def test_a_table_for_each_score(corpus: Path) -> None:
    options = ["--prior", "robust", "--prior", "paper", "--traces", corpus, "--sizes", "4,8"]
    result = invoke_prior(*options)
    assert result.exit_code == 0, result.output
    for words in ("prior paper - prior robust", "evidence", "without g", "n = 4", "n = 8", "%"):
        assert words in result.stdout
    rows = json.loads(invoke_prior(*options, "--json").stdout)
    assert {row["score"] for row in rows} == {"evidence", "next", "better"}
    assert {row["n"] for row in rows} == {4, 8}
    [row] = [r for r in rows if (r["score"], r["families"], r["n"]) == ("next", "f", 8)]
    assert row["problems"] == 2
    rows = json.loads(invoke_prior(*options, "--families", "f", "--json").stdout)
    assert {row["families"] for row in rows} == {"f", "all"}


def test_weights_come_before_priors(corpus: Path) -> None:
    options = ["kernel-paper", "--prior", "paper", "--traces", corpus, "--sizes", "8", "--json"]
    rows = json.loads(invoke_prior(*options).stdout)
    assert {row["network"] for row in rows} == {"prior paper"}
    # Nothing in it is learned.
    assert all(abs(row["mean"]) < 1e-6 for row in rows)


def test_wrong_input_is_explained(corpus: Path) -> None:
    for arguments, words in (
        (["kernel-paper"], "at least two"),
        (["kernel-paper", "--prior", "paper", "--families", "h", "--traces", corpus], "f, g"),
    ):
        result = invoke_prior(*arguments)
        assert result.exit_code == click.UsageError.exit_code
        assert words in result.output
