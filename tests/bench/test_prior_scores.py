import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from amortes.bench import prior_scores
from amortes.bench.prior_scores import (
    Trace,
    by_family,
    differences,
    read_traces,
    score_networks,
    score_trace,
    shipped,
    traces_of,
    write_traces,
)
from amortes.bench.protocol import optimise
from amortes.bench.results import PlannedRun, ResultsFolder, run_csv
from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import named_prior
from tests.bench.fake import Bowl, fake_method


def test_traces_are_all_that_a_run_observed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prior_scores, "make_problem", Bowl)
    folder, run = (
        ResultsFolder(tmp_path),
        PlannedRun(problem="bowl3", method="random", seed=2, iterations=7),
    )
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    class Watched:
        def __init__(self) -> None:
            self.inner = fake_method("random")(Bowl("bowl3"), 2)

        def step(self, X: torch.Tensor, y: torch.Tensor) -> object:
            seen.append((X, y))
            return self.inner.step(X, y)

    problem = Bowl("bowl3")
    records = optimise(problem, lambda p, s: Watched(), seed=2, iterations=7)  # type: ignore[arg-type]
    folder.put(run, run_csv(run, problem, records, version="1", commit=""))
    [trace] = traces_of([tmp_path])
    assert (trace.problem, trace.family, trace.method) == ("bowl3", "prior", "random")
    assert (trace.seed, trace.noise_sd) == (2, 0.1)
    torch.testing.assert_close(trace.X, seen[-1][0], rtol=0, atol=1e-8)
    torch.testing.assert_close(trace.y, seen[-1][1], rtol=0, atol=1e-8)
    with pytest.raises(FileError, match="no finished runs"):
        traces_of([tmp_path / "empty"])


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    kept = [
        Trace(
            problem=f"p{d}",
            family="f",
            method="m",
            seed=d,
            noise_sd=0.5,
            X=torch.rand(4, d, generator=rng, dtype=torch.float64),
            y=1e30 * torch.randn(4, generator=rng, dtype=torch.float64),
        )
        for d in (1, 3)
    ]
    write_traces(tmp_path / "t.npz", kept)
    for trace, other in zip(read_traces(tmp_path / "t.npz"), kept, strict=True):
        assert (trace.problem, trace.seed, trace.noise_sd) == (
            other.problem,
            other.seed,
            0.5,
        )
        assert trace.X.dtype == torch.float64
        torch.testing.assert_close(trace.X, other.X, rtol=0, atol=1e-7)
        assert torch.equal(trace.y, other.y)


@pytest.mark.parametrize("content", [b"", b"not a zip", None])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "t.npz"
    if content is None:
        np.savez(path, X0=np.zeros(3))
    else:
        path.write_bytes(content)
    with pytest.raises(FileError, match=r"not a file of traces.*amortes bench traces"):
        read_traces(path)
    with pytest.raises(FileError, match="does not exist"):
        read_traces(tmp_path / "absent.npz")


def test_the_corpus_has_three_runs_on_problems_of_eight_families() -> None:
    corpus = read_traces(shipped())
    assert len({trace.family for trace in corpus}) == 8
    assert set(Counter(trace.problem for trace in corpus).values()) == {3}
    for trace in corpus:
        assert len(trace.X) == len(trace.y) == 60
        assert bool(((trace.X >= 0) & (trace.X <= 1)).all())
        assert trace.y.isfinite().all()
        assert (trace.noise_sd > 0) == (trace.family == "classic-noisy")


def network(name: str) -> KernelNetwork:
    return KernelNetwork(KernelConfig(encoder=None), named_prior(name)).eval()


def trace(problem: str = "p", family: str = "f", n: int = 14, scale: float = 50.0) -> Trace:
    X = torch.rand(n, 1, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    y = scale * (9.0 * X[:, 0]).sin()
    return Trace(problem=problem, family=family, method="m", seed=0, noise_sd=0.0, X=X, y=y)


def test_scores_are_those_of_the_textbook() -> None:
    """Prior paper-1d has known hyperparameters: one Gaussian process on standardised y."""
    given = trace()
    score = score_trace(network("paper-1d"), given, [12], plain=True)[12]
    told, scale = given.y[:12], float(given.y[:12].std())
    z = ((given.y - told.mean()) / scale).numpy()
    K = 10.0 * torch.exp(-0.5 * (torch.cdist(given.X, given.X) / 0.05).square()).numpy()
    noisy = K + 0.01 * torch.eye(14).numpy()
    joint = scipy.stats.multivariate_normal(cov=noisy[:12, :12]).logpdf(z[:12])
    # An estimate by importance sampling, of which 0.02 nats are the error here.
    assert score["evidence"] == pytest.approx(joint / 12 - math.log(scale), abs=3e-3)
    densities = []
    for i in (12, 13):
        both = [*range(12), i]
        after = scipy.stats.multivariate_normal(cov=noisy[both][:, both]).logpdf(z[both])
        densities.append(after - joint - math.log(scale))
    assert score["next"] == pytest.approx(sum(densities) / 2, abs=1e-6)
    better = [value for value, y in zip(densities, given.y[12:], strict=True) if y > told.median()]
    assert 0 < len(better) <= 2
    assert score["better"] == pytest.approx(sum(better) / len(better), abs=1e-6)


def test_nothing_to_predict_is_no_score() -> None:
    given = trace()
    assert list(score_trace(network("robust"), given, [5, 14, 20])) == [5]
    flat = Trace(**{**vars(given), "y": torch.ones(14, dtype=torch.float64)})
    assert score_trace(network("robust"), flat, [5]) == {}


def test_units_do_not_matter_to_differences() -> None:
    networks: dict[str, Any] = {"a": network("robust"), "b": network("paper")}
    small = score_networks(networks, [trace(scale=1e-3)], [10])
    large = score_networks(networks, [trace(scale=1e6)], [10])
    assert [d["mean"] for d in small] == pytest.approx([d["mean"] for d in large], abs=1e-6)
    assert {(d["network"], d["families"], d["n"], d["problems"]) for d in small} == {
        ("b", "f", 10, 1),
        ("b", "all", 10, 1),
    }
    with pytest.raises(ConfigError, match="a baseline and one"):
        score_networks({"a": network("robust")}, [], [10])


def test_each_family_counts_the_same_and_is_left_out_in_turn() -> None:
    gaps = {"f": {"a": 1.0, "b": 3.0}, "g": {"c": -1.0, "d": -2.0, "e": -3.0}}
    rows = by_family(gaps)
    assert list(rows) == ["f", "g", "all", "without f", "without g"]
    assert [row["mean"] for row in rows.values()] == [2.0, -2.0, 0.0, -2.0, 2.0]
    assert [row["ahead"] for row in rows.values()] == [1.0, 0.0, 0.4, 0.0, 1.0]
    assert rows["f"]["error"] == pytest.approx(1.0)
    assert rows["g"]["error"] == pytest.approx(1 / math.sqrt(3))
    assert rows["all"]["error"] == pytest.approx(math.sqrt(1 + 1 / 3) / 2)
    assert by_family({}) == {}


def test_traces_of_a_problem_are_averaged_and_missing_scores_left_out() -> None:
    given = [trace("a"), trace("a"), trace("b"), trace("c")]
    ours = [{10: {"evidence": value}} for value in (1.0, 3.0, math.nan)]
    theirs = [{10: {"evidence": 0.0}}] * 3
    assert differences(given, [*ours, {}], [*theirs, {}], "evidence", 10) == {"f": {"a": 2.0}}
