from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from amortes.bench import traces
from amortes.bench.loop import optimise
from amortes.bench.results import PlannedRun, ResultsFolder, run_csv
from amortes.bench.traces import Trace, read_traces, shipped, traces_of, write_traces
from amortes.errors import FileError
from tests.bench.fake import Bowl, fake_method


def test_traces_are_all_that_a_run_observed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "make_problem", Bowl)
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
