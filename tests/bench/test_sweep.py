import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import amortes
from amortes.bench.results import PlannedRun, ResultsFolder
from amortes.bench.sweep import Progress, Summary, commit, sweep, write_environment
from amortes.engines import Engine, Made, Task, local_engine, ray_engine
from amortes.errors import ConfigError
from amortes.files import read_json
from tests.bench.fake import Bowl, fake_method
from tests.bench.test_results import as_text, table


def test_the_latest_session_is_described_and_different_earlier_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "environment.json"
    now = write_environment(path)
    assert read_json(path) == now | {"earlier": []}
    assert now["amortes"] == amortes.__version__
    assert now["packages"]["torch"] == importlib.metadata.version("torch")
    assert str(torch.__version__).startswith(now["packages"]["torch"].split("+")[0])
    assert now["cpu"]
    write_environment(path)
    assert read_json(path)["earlier"] == []  # nothing but the date is new
    monkeypatch.setattr(sys.modules["amortes.bench.sweep"], "commit", lambda: "another")
    write_environment(path)
    document = read_json(path)
    assert document["commit"] == "another"
    assert [e["commit"] for e in document["earlier"]] == [now["commit"]]


def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    file = tmp_path / "package" / "__init__.py"
    file.write_text("")
    monkeypatch.setattr(amortes, "__file__", str(file))
    assert commit() == ""
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    clean = commit()
    assert len(clean) == 12
    (tmp_path / "notes.txt").write_text("outside the package")
    assert commit() == clean
    file.write_text("changed = True")
    assert commit() == f"{clean}+"
    (tmp_path / ".gitignore").write_text(".venv/")
    (tmp_path / ".venv").mkdir()
    installed = tmp_path / ".venv" / "__init__.py"
    installed.write_text("")
    monkeypatch.setattr(amortes, "__file__", str(installed))
    assert commit() == ""  # that of another project


HERE = local_engine(1)
ROOT = Path(__file__).parents[2]


def runs_of(*methods: str, seeds: int = 2, iterations: int = 5) -> list[PlannedRun]:
    return [
        PlannedRun(problem=problem, method=method, seed=seed, iterations=iterations)
        for seed in range(seeds)
        for problem in ("bowl2", "bowl3")
        for method in methods
    ]


def do(folder: Path, runs: Sequence[PlannedRun], engine: Engine = HERE, **options: Any) -> Summary:
    return sweep(
        folder, runs, engine=engine, problem_maker=Bowl, method_maker=fake_method, **options
    )


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "runs").glob("*.csv")}


def changed(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "runs").glob("*.csv")}


@pytest.fixture
def undisturbed(tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "undisturbed"
    do(folder, runs_of("random", "slow"))
    return files(folder)


def test_results_environment_and_progress(tmp_path: Path) -> None:
    heard: list[Progress] = []
    runs = runs_of("random")
    summary = do(tmp_path, runs, progress=heard.append)
    assert (summary.finished, summary.made, summary.failures) == (4, 4, [])
    assert [(h.done, h.total, h.run) for h in heard] == [
        (i, 4, run) for i, run in enumerate([None, *runs])
    ]
    assert heard[-1].seconds_left == 0.0
    rows = ResultsFolder(tmp_path).rows(runs)
    assert table(tmp_path / "results.csv") == as_text(rows)
    assert len(rows) == 2 * (4 + 3)
    assert {row["commit"] for row in rows} == {read_json(tmp_path / "environment.json")["commit"]}


def test_finished_runs_are_not_repeated_and_longer_ones_are_new(tmp_path: Path) -> None:
    do(tmp_path, runs_of("random"))
    before = changed(tmp_path)
    summary = do(tmp_path, runs_of("random", seeds=3))
    assert (summary.finished, summary.made) == (6, 2)
    assert before.items() <= changed(tmp_path).items()
    assert do(tmp_path, runs_of("random", iterations=6)).made == 4
    assert do(tmp_path, runs_of("random", iterations=4)).made == 0


def test_a_failing_run_is_recorded_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "fail"
    switch.touch()
    monkeypatch.setenv("AMORTES_TEST_FAIL", str(switch))
    folder, runs = tmp_path / "results", runs_of("failing", "random", "unheard-of")
    summary = do(folder, runs)
    assert (summary.finished, summary.made, len(summary.failures)) == (4, 4, 8)
    text = (folder / "failures" / "bowl3__failing__1.txt").read_text()
    assert "Traceback" in text
    assert "ZeroDivisionError: on purpose" in text
    assert {row["method"] for row in table(folder / "results.csv")} == {"random"}
    switch.unlink()
    again = do(folder, runs)
    assert (again.made, len(again.failures)) == (0, 8)  # not tried again
    retried = do(folder, runs, retry_failed=True)
    assert (retried.finished, retried.made, len(retried.failures)) == (8, 4, 4)
    assert not list((folder / "failures").glob("*failing*"))


def test_runs_with_other_weights_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "old")
    assert do(tmp_path, runs_of("random", "slow")).made == 8
    found = {(r["method"], r["weights"]) for r in ResultsFolder(tmp_path).rows()}
    assert found == {("random", ""), ("slow", "old")}
    monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "new")
    before = changed(tmp_path)
    with pytest.raises(ConfigError, match=r"slow \(then old, now new\)"):
        do(tmp_path, runs_of("random", "slow", seeds=3))
    with pytest.raises(ConfigError, match=r"slow \(then old, now new\)"):  # nor as other seeds
        do(tmp_path, [run for run in runs_of("slow", seeds=4) if run.seed > 1])
    assert changed(tmp_path) == before
    assert do(tmp_path, runs_of("random", seeds=3)).made == 2


def test_weights_that_change_during_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
        yield task(indices[0])
        monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "new")
        yield task(indices[1])

    monkeypatch.setenv("AMORTES_TEST_WEIGHTS", "old")
    summary = do(tmp_path, runs_of("slow", seeds=1), engine)
    (failure,) = summary.failures
    assert "the weights here (new) are not those" in failure.read_text()


def test_ray_makes_the_same_files(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about itself
        do(tmp_path / "ray", runs_of("random", "slow"), ray_engine(workers=1))
    assert files(tmp_path / "ray") == undisturbed


def test_an_interrupt_keeps_and_merges_what_is_done(tmp_path: Path) -> None:
    def engine(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
        yield from map(task, indices[:3])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(tmp_path, runs_of("random"), engine)
    rows = table(tmp_path / "results.csv")
    assert len({(row["problem"], row["seed"]) for row in rows}) == 3
    assert do(tmp_path, runs_of("random")).made == 1


def test_processes_that_are_killed_lose_and_repeat_nothing(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    folder = tmp_path / "killed"
    program = f"""
from pathlib import Path
from tests.bench.test_sweep import do, runs_of
from amortes.engines import local_engine
if __name__ == "__main__":
    do(Path({str(folder)!r}), runs_of("random", "slow"), local_engine(2))
"""
    script = tmp_path / "script.py"
    script.write_text(program)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(changed(folder)) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    kept = changed(folder)
    assert 3 <= len(kept) < 8
    (folder / "runs" / ".bowl2__random__0.csv.x.tmp").write_text("half")
    summary = do(folder, runs_of("random", "slow"))
    assert (summary.finished, summary.made) == (8, 8 - len(kept))
    assert kept.items() <= changed(folder).items()
    assert files(folder) == undisturbed
    assert not list((folder / "runs").glob(".*"))
    rows = table(folder / "results.csv")
    keys = [(r["problem"], r["method"], r["seed"], r["iteration"]) for r in rows]
    assert len(set(keys)) == len(keys) == 4 * 4 + 4 * 3
