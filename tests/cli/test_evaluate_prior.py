import json
from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner, Result

from amortes.bench.traces import Trace, write_traces
from amortes.cli.evaluate_prior import prior


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


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(prior, [str(a) for a in arguments])


def test_a_table_for_each_score(corpus: Path) -> None:
    options = ["--prior", "robust", "--prior", "paper", "--traces", corpus, "--sizes", "4,8"]
    result = invoke(*options)
    assert result.exit_code == 0, result.output
    for words in ("prior paper - prior robust", "evidence", "without g", "n = 4", "n = 8", "%"):
        assert words in result.stdout
    rows = json.loads(invoke(*options, "--json").stdout)
    assert {row["score"] for row in rows} == {"evidence", "next", "better"}
    assert {row["n"] for row in rows} == {4, 8}
    [row] = [r for r in rows if (r["score"], r["families"], r["n"]) == ("next", "f", 8)]
    assert row["problems"] == 2
    rows = json.loads(invoke(*options, "--families", "f", "--json").stdout)
    assert {row["families"] for row in rows} == {"f", "all"}


def test_weights_come_before_priors(corpus: Path) -> None:
    options = ["kernel-paper", "--prior", "paper", "--traces", corpus, "--sizes", "8", "--json"]
    rows = json.loads(invoke(*options).stdout)
    assert {row["network"] for row in rows} == {"prior paper"}
    # Nothing in it is learned.
    assert all(abs(row["mean"]) < 1e-6 for row in rows)


def test_wrong_input_is_explained(corpus: Path) -> None:
    for arguments, words in (
        (["kernel-paper"], "at least two"),
        (["kernel-paper", "--prior", "paper", "--families", "h", "--traces", corpus], "f, g"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == click.UsageError.exit_code
        assert words in result.output
