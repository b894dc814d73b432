import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from amortes.bench.report.results import load_results
from amortes.errors import FileError
from tests.bench.report.fake import run, write_sweep

HEADER = "problem,d,method,seed,iteration,value,regret\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "results.csv"
    path.write_text(text)
    return path


def test_a_sweep(tmp_path: Path) -> None:
    write_sweep(tmp_path, problems=["branin", "lcbench-Fashion-MNIST"], methods=["jes", "random"])
    results = load_results(tmp_path)
    assert results.problems == ["branin", "lcbench-fashionmnist"]
    assert results.methods == ["jes", "random"]
    assert results.on("branin") == ["jes", "random"]
    assert sorted(results.seeds("branin", "jes")) == [0, 1, 2]
    assert results.seeds("branin", "mes") == {}
    one = results.seeds("branin", "jes")[0]
    assert (one.d, one.noise_sd, one.threads, one.last) == (2, 0.316, "1", 30)
    assert one.iteration.tolist() == list(range(2, 31))
    np.testing.assert_allclose(one.value + one.regret, 1.0)
    assert one.seconds.shape == (29, 3)
    assert results.versions == ["0.1.0"]
    assert results.commits == ["0123456789abcdef"]
    assert [environment["python"] for environment in results.environments] == ["3.11"]
    assert load_results(tmp_path / "results.csv").problems == results.problems


def test_several_sweeps_are_one(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a", problems=["branin"], methods=["jes"])
    write_sweep(tmp_path / "b", problems=["branin", "ackley5"], methods=["random"], seeds=2)
    results = load_results(tmp_path / "a", tmp_path / "b" / "results.csv")
    assert {p: results.on(p) for p in results.problems} == {
        "branin": ["jes", "random"],
        "ackley5": ["random"],
    }
    assert len(results.environments) == 2
    assert results.notes == []
    write(tmp_path, HEADER)
    with pytest.raises(FileError, match="no results"):
        load_results(tmp_path / "a", tmp_path)


@pytest.mark.parametrize(("first", "last"), [(30, 20), (20, 30)])
def test_the_run_of_the_last_sweep_counts_as_a_whole(tmp_path: Path, first: int, last: int) -> None:
    both, one = ["jes", "random"], ["jes"]
    a = write_sweep(tmp_path / "a", problems=["branin"], methods=both, iterations=first)
    b = write_sweep(tmp_path / "b", problems=["branin"], methods=one, seeds=2, iterations=last)
    text = (b / "results.csv").read_text().replace("0.1.0,0123456789abcdef", "0.2.0,later")
    (b / "results.csv").write_text(text.replace("branin,2,0.316", "branin,2,0.5"))
    results = load_results(a, b)
    assert len(results.runs) == 2 * 3
    lasts = {seed: run.last for seed, run in results.seeds("branin", "jes").items()}
    assert lasts == {0: last, 1: last, 2: first}
    noises = {seed: run.noise_sd for seed, run in results.seeds("branin", "jes").items()}
    assert noises == {0: 0.5, 1: 0.5, 2: 0.316}
    assert results.versions == ["0.1.0", "0.2.0"]
    (note,) = results.notes
    assert note.endswith("the same problem, method and seed: 2 runs.")
    assert load_results(b, b).commits == ["later"]


def test_replaced_runs_leave_no_trace_of_their_weights(tmp_path: Path) -> None:
    header = HEADER.replace("\n", ",weights\n")
    for digest in ("old", "new"):
        (tmp_path / digest).mkdir()
        write(tmp_path / digest, f"{header}branin,2,jes,0,2,1,1,{digest}\n")
    results = load_results(tmp_path / "old", tmp_path / "new")
    assert results.weights == {"jes": ["new"]}
    assert len(results.notes) == 1


def test_a_sweep_that_is_not_finished(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for seed in range(2):
        folder = write_sweep(tmp_path / str(seed), problems=["branin"], methods=["jes"], seeds=1)
        text = (folder / "results.csv").read_text().replace(",jes,0,", f",jes,{seed},")
        runs.mkdir(exist_ok=True)
        (runs / f"branin__jes__{seed}.csv").write_text(text)
    write(tmp_path, HEADER + "branin,2,jes,0,2,1,1\n")  # an older one
    results = load_results(tmp_path)
    assert sorted(results.seeds("branin", "jes")) == [0, 1]
    assert results.seeds("branin", "jes")[0].last == 30


def test_rows_out_of_order_repeated_and_unfinished(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        HEADER + "branin,2,jes,0,3,1.5,0.5\nbranin,2,jes,0,2,1,1\nbranin,2,jes,0,3,1.6,0.4\n"
        "branin,2,jes,0,4,,\n",
    )
    results = load_results(path)
    (one,) = results.runs
    assert one.iteration.tolist() == [2, 3]
    assert one.value.tolist() == [1.0, 1.6]
    assert len(results.notes) == 2
    assert np.isnan(one.seconds).all()
    assert results.environments == []


def test_weights(tmp_path: Path) -> None:
    header = HEADER.replace("\n", ",weights\n")
    rows = [("jes", 0, "0a"), ("jes", 1, "0b"), ("mes", 0, "0a"), ("random", 0, "")]
    lines = [f"branin,2,{method},{seed},2,1,1,{digest}\n" for method, seed, digest in rows]
    results = load_results(write(tmp_path, header + "".join(lines)))
    assert results.weights == {"jes": ["0a", "0b"], "mes": ["0a"]}
    assert results.notes == ["jes: its runs were made with different weights (0a, 0b)."]


def test_scores() -> None:
    one = run("branin", "jes", 0, [1.0, 2.0], first=3)
    assert one.score_at(4) == 2.0
    assert math.isnan(one.score_at(5))
    other = run("branin", "jes", 0, [math.nan] * 2, regret=[3.0, 1.0])
    assert other.score.tolist() == [-3.0, -1.0]


def test_failures_are_told(sweep: Path) -> None:
    assert load_results(sweep).failures == ["branin, fb-mes, seed 0: ValueError: of some kind"]


def test_a_folder_with_two_files_is_told_once(sweep: Path, tmp_path: Path) -> None:
    shutil.copytree(sweep, tmp_path / "two")
    files = [tmp_path / "two" / name for name in ("a.csv", "b.csv")]
    for file in files:
        shutil.copy(sweep / "results.csv", file)
    results = load_results(*files, Path(os.path.relpath(files[0])))
    assert len(results.environments) == len(results.failures) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "lacks the columns problem, d"),
        (HEADER, "no results"),
        (HEADER + "branin,2,jes,0,2,one,1\n", "line 2"),
        (HEADER + "branin,2,jes\n", "line 2"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        load_results(write(tmp_path, text))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="amortes bench run"):
        load_results(tmp_path)
