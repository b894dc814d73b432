import csv
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from amortes.bench.protocol import optimise
from amortes.bench.results import COLUMNS, PlannedRun, ResultsFolder, run_csv
from amortes.errors import FileError
from tests.bench.fake import Bowl, fake_method


def run_of(
    method: str = "random", problem: str = "bowl2", seed: int = 0, iterations: int = 4
) -> PlannedRun:
    return PlannedRun(problem=problem, method=method, seed=seed, iterations=iterations)


def text_of(run: PlannedRun) -> str:
    problem = Bowl(run.problem)
    records = optimise(problem, fake_method("random"), seed=run.seed, iterations=run.iterations)
    return run_csv(run, problem, records, version="1.2", commit="abc+", weights="0a1b")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Rows as `ResultsFolder` reads them, as they are written."""
    seconds = ("fit_seconds", "search_seconds", "recommend_seconds")
    return [
        {name: f"{value:.6f}" if name in seconds else str(value) for name, value in row.items()}
        for row in rows
    ]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run, folder = run_of(), ResultsFolder(tmp_path)
    folder.put(run, text_of(run))
    rows = folder.rows()
    records = optimise(Bowl(), fake_method("random"), seed=0, iterations=4)
    assert [row["iteration"] for row in rows] == [2, 3, 4]
    for row, record in zip(rows, records, strict=True):
        assert tuple(row) == COLUMNS
        assert (row["y"], row["value"], row["regret"]) == (record.y, record.value, record.regret)
        assert (row["simple_value"], row["simple_regret"]) == (
            record.simple_value,
            record.simple_regret,
        )
        assert row["x"] == pytest.approx(record.x, abs=1e-9)
        assert row["recommended"] == pytest.approx(record.recommended, abs=1e-9)
        assert (row["problem"], row["d"], row["noise_sd"]) == ("bowl2", 2, 0.1)
        assert (row["method"], row["seed"], row["threads"]) == ("random", 0, 1)
        assert (row["version"], row["commit"]) == ("1.2", "abc+")
        assert row["weights"] == "0a1b"
    assert folder.weights() == {"random": {"0a1b"}}


def test_unknown_regret_is_empty(tmp_path: Path) -> None:
    problem = Bowl()
    problem.best = None
    records = optimise(problem, fake_method("random"), seed=0, iterations=2)
    folder = ResultsFolder(tmp_path)
    folder.put(run_of(iterations=2), run_csv(run_of(), problem, records, version="1", commit=""))
    assert [row["regret"] for row in folder.rows()] == [None]
    assert [row["regret"] for row in table(folder.merge())] == [""]


def test_merge_holds_all_runs_once(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    runs = [run_of(seed=seed, problem=name) for seed in (0, 1) for name in ("bowl2", "bowl3")]
    for run in runs:
        folder.put(run, text_of(run))
    rows = folder.rows()
    assert table(folder.merge()) == as_text(rows)
    assert len(rows) == 2 * 3 + 2 * 2
    assert folder.rows(runs[:1]) == [r for r in rows if r["problem"] == "bowl2" and not r["seed"]]


def test_names_of_methods_may_be_paths(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    methods = ["jes@a/b.safetensors", "jes@a__b.safetensors", "jes@../../b.safetensors", "jes"]
    for method in methods:
        folder.put(run_of(method), text_of(run_of(method)))
    assert len(list((tmp_path / "runs").iterdir())) == 4
    assert {row["method"] for row in folder.rows()} == set(methods)


def test_a_longer_run_counts_a_shorter_or_damaged_one_does_not(tmp_path: Path) -> None:
    folder, run = ResultsFolder(tmp_path), run_of(iterations=4)
    assert not folder.finished(run)
    folder.put(run, text_of(run))
    assert folder.finished(run)
    assert folder.finished(run_of(iterations=3))
    assert not folder.finished(run_of(iterations=5))
    assert not folder.finished(run_of(seed=1))
    [file] = (tmp_path / "runs").iterdir()
    file.write_text("something else\n")
    assert not folder.finished(run)
    header, *lines = text_of(run).splitlines()
    file.write_text("\n".join([header.removesuffix(",weights"), *lines]) + "\n")
    assert not folder.finished(run)
    assert folder.weights() == {}
    assert table(folder.merge()) == []


def test_success_forgets_failure(tmp_path: Path) -> None:
    folder, run = ResultsFolder(tmp_path), run_of()
    path = folder.put_failure(run, "Traceback: boom")
    assert folder.failed(run)
    assert path == folder.failure_file(run)
    assert path.read_text() == "bowl2, random, seed 0\n\nTraceback: boom"
    folder.put(run, text_of(run))
    assert not folder.failed(run)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "new")
    with folder.locked():
        pass
    handle = os.open(folder.path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(FileError, match="another sweep"), folder.locked():
        pass
    os.close(handle)
