import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from amortes.bench.report.load import FLOOR, common_rows, load_results, pack
from amortes.errors import FileError
from tests.bench.report.fake import results, run, write_sweep

HEADER = "problem,d,method,seed,iteration,value,regret\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "results.csv"
    path.write_text(text)
    return path


def test_a_sweep(tmp_path: Path) -> None:
    write_sweep(tmp_path, problems=["branin", "lcbench-fashion-mnist"], methods=["jes", "random"])
    found = load_results(tmp_path)
    assert found.problems == ["branin", "lcbench-fashion-mnist"]
    assert found.methods == ["jes", "random"]
    ends = found.runs[["problem", "method", "seed"]].to_numpy().tolist()
    assert ends[:4] == [["branin", "jes", seed] for seed in range(3)] + [["branin", "random", 0]]
    one = found.rows.query("problem == 'branin' and method == 'jes' and seed == 0")
    assert one["iteration"].tolist() == list(range(2, 31))
    assert set(zip(one["d"], one["noise_sd"], one["threads"], strict=True)) == {(1, 0.316, "1")}
    np.testing.assert_allclose(one["value"] + one["regret"], 1.0)
    np.testing.assert_allclose(one["metric"], np.log10(one["regret"]))
    assert [environment["python"] for environment in found.environments] == ["3.11"]
    assert load_results(tmp_path / "results.csv").problems == found.problems


def test_several_sweeps_are_one(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a", problems=["branin"], methods=["jes"])
    write_sweep(tmp_path / "b", problems=["branin", "ackley5"], methods=["random"], seeds=2)
    found = load_results(tmp_path / "a", tmp_path / "b" / "results.csv")
    pairs = found.runs[["problem", "method"]].drop_duplicates().to_numpy().tolist()
    assert pairs == [["branin", "jes"], ["branin", "random"], ["ackley5", "random"]]
    assert len(found.environments) == 2
    assert found.notes == []
    write(tmp_path, HEADER)
    with pytest.raises(FileError, match="no results"):
        load_results(tmp_path / "a", tmp_path)


@pytest.mark.parametrize(("first", "last"), [(30, 20), (20, 30)])
def test_the_run_of_the_last_sweep_counts_as_a_whole(tmp_path: Path, first: int, last: int) -> None:
    both, one = ["jes", "random"], ["jes"]
    a = write_sweep(tmp_path / "a", problems=["branin"], methods=both, iterations=first)
    b = write_sweep(tmp_path / "b", problems=["branin"], methods=one, seeds=2, iterations=last)
    text = (b / "results.csv").read_text().replace("0.1.0,0123456789abcdef", "0.2.0,later")
    (b / "results.csv").write_text(text.replace("0.316", "0.5"))
    found = load_results(a, b)
    assert len(found.runs) == 2 * 3
    runs = found.runs[found.runs["method"] == "jes"].set_index("seed")
    assert runs["iteration"].to_dict() == {0: last, 1: last, 2: first}
    assert runs["noise_sd"].to_dict() == {0: 0.5, 1: 0.5, 2: 0.316}
    assert set(found.rows["version"]) == {"0.1.0", "0.2.0"}
    (note,) = found.notes
    assert note.endswith("the same problem, method and seed: 2.")
    assert set(load_results(b, b).rows["commit"]) == {"later"}


def test_replaced_runs_leave_no_trace_of_their_weights(tmp_path: Path) -> None:
    header = HEADER.replace("\n", ",weights\n")
    for digest in ("old", "new"):
        (tmp_path / digest).mkdir()
        write(tmp_path / digest, f"{header}branin,2,jes,0,2,1,1,{digest}\n")
    found = load_results(tmp_path / "old", tmp_path / "new")
    assert found.weights == {"jes": ["new"]}
    assert len(found.notes) == 1


def test_a_sweep_that_is_not_finished(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for seed in range(2):
        folder = write_sweep(tmp_path / str(seed), problems=["branin"], methods=["jes"], seeds=1)
        text = (folder / "results.csv").read_text().replace(",jes,0,", f",jes,{seed},")
        runs.mkdir(exist_ok=True)
        (runs / f"branin__jes__{seed}.csv").write_text(text)
    write(tmp_path, HEADER + "branin,2,jes,0,2,1,1\n")  # an older one
    found = load_results(tmp_path)
    assert found.runs[["seed", "iteration"]].to_numpy().tolist() == [[0, 30], [1, 30]]


def test_rows_out_of_order_repeated_and_unfinished(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        HEADER + "branin,2,jes,0,3,1.5,0.5\nbranin,2,jes,0,2,1,1\nbranin,2,jes,0,3,1.6,0.4\n"
        "branin,2,jes,0,4,,\n",
    )
    found = load_results(path)
    assert found.rows[["iteration", "value"]].to_numpy().tolist() == [[2, 1.0], [3, 1.6]]
    assert len(found.notes) == 2
    assert found.rows["fit_seconds"].isna().all()
    assert found.environments == []


def test_weights(tmp_path: Path) -> None:
    header = HEADER.replace("\n", ",weights\n")
    rows = [("jes", 0, "0a"), ("jes", 1, "0b"), ("mes", 0, "0a"), ("random", 0, "")]
    lines = [f"branin,2,{method},{seed},2,1,1,{digest}\n" for method, seed, digest in rows]
    found = load_results(write(tmp_path, header + "".join(lines)))
    assert found.weights == {"jes": ["0a", "0b"], "mes": ["0a"]}


def test_scores_and_metrics() -> None:
    runs = [
        run("branin", "jes", 0, [1.0, 2.0], first=3, regret=[0.1, 0.0]),
        run("branin", "mes", 0, [math.nan] * 2, first=3, regret=[3.0, 1.0]),
        run("lcbench-car", "jes", 0, [80.0], regret=3.0),
    ]
    sweep = results(*runs)
    rows = sweep.rows.set_index(["problem", "method"])
    assert rows["score"]["branin", "jes"].tolist() == [1.0, 2.0]
    assert rows["score"]["branin", "mes"].tolist() == [-3.0, -1.0]
    metric = rows["metric"]
    assert metric["branin", "jes"].tolist() == [-1.0, math.log10(FLOOR)]
    assert metric["lcbench-car", "jes"] == 80.0


def test_failures_are_told(sweep: Path) -> None:
    assert load_results(sweep).failures == ["branin, fb-mes, seed 0: ValueError: of some kind"]


def test_a_folder_with_two_files_is_told_once(sweep: Path, tmp_path: Path) -> None:
    shutil.copytree(sweep, tmp_path / "two")
    files = [tmp_path / "two" / name for name in ("a.csv", "b.csv")]
    for file in files:
        shutil.copy(sweep / "results.csv", file)
    found = load_results(*files, Path(os.path.relpath(files[0])))
    assert len(found.environments) == len(found.failures) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "lacks the columns problem, d"),
        (HEADER, "no results"),
        (HEADER + "branin,2,jes,0,2,one,1\n", "is damaged: .*'one'"),
        (HEADER + "branin,2,jes\n", "is damaged: Integer column has NA"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        load_results(write(tmp_path, text))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="amortes bench run"):
        load_results(tmp_path)


def test_a_method_with_few_runs_is_left_out() -> None:
    runs = [run(p, m, 0, [1.0]) for p in "abc" for m in ("jes", "mes")]
    sweep = results(*runs, run("a", "fb-jes", 0, [1.0]), run("d", "jes", 0, [1.0]))
    rows, left_out = common_rows(sweep, list("abcd"))
    assert set(zip(rows["problem"], rows["method"], strict=True)) == {
        (problem, method) for problem in "abc" for method in ("jes", "mes")
    }
    assert left_out == ["fb-jes"]


def test_methods_without_a_common_cell() -> None:
    runs = [run("a", "jes", seed, [1.0]) for seed in (0, 1)] + [run("a", "mes", 2, [1.0])]
    rows, left_out = common_rows(results(*runs), ["a"])
    assert (set(rows["method"]), left_out) == ({"jes"}, ["mes"])
    nothing, _ = common_rows(results(*runs), ["b"])
    assert nothing.empty


PACKED = "problem,d,noise_sd,method,seed,iteration,x,y,recommended,value,regret,fit_seconds,weights"


def folder_of(folder: Path, *lines: str) -> Path:
    folder.mkdir()
    (folder / "results.csv").write_text("\n".join([PACKED, *lines]) + "\n")
    return folder


def test_reports_read_it_as_they_read_the_sweeps(tmp_path: Path) -> None:
    one = folder_of(
        tmp_path / "one",
        'branin,2,0.316,jes,10,2,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-1.2345678,1.63245432,0.123456,abc',
        'branin,2,0.316,jes,10,3,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-0.4,0.8,,abc',
        'branin,2,0.316,jes,9,2,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-0.4,0.8,,abc',
    )
    two = folder_of(
        tmp_path / "two", 'branin,2,0.316,jes,9,2,"[0.5, 0.5]",0.0,"[0, 0]",-0.2,0.6,,abc'
    )
    target = tmp_path / "packed.csv.gz"
    assert pack([one, two], target) == 2
    whole, packed = load_results(one, two), load_results(target)
    keys = ["problem", "method", "seed", "d", "iteration"]
    assert packed.rows[keys].equals(whole.rows[keys])
    np.testing.assert_allclose(packed.rows["regret"], whole.rows["regret"], rtol=1e-5)
    np.testing.assert_allclose(packed.rows["fit_seconds"], whole.rows["fit_seconds"], rtol=1e-2)
    assert packed.weights == whole.weights == {"jes": ["abc"]}
    first = target.read_bytes()
    pack([target], target)
    assert target.read_bytes() == first


def test_damaged_files_are_told(tmp_path: Path) -> None:
    target = tmp_path / "packed.csv.gz"
    folder = folder_of(tmp_path / "one", "branin,2,0.3,jes,0,2,,,,-1.2,high,,")
    with pytest.raises(FileError, match=r"is damaged: .*'high'"):
        pack([folder], target)
    assert not target.exists()
    with pytest.raises(FileError, match="does not exist"):
        pack([tmp_path / "none"], target)
    target.write_bytes(b"not compressed")
    with pytest.raises(FileError, match="is damaged"):
        load_results(target)


def test_files_without_results_are_refused(tmp_path: Path) -> None:
    file, target = tmp_path / "other.csv", tmp_path / "packed.csv.gz"
    file.write_text("problem,seed\nbranin,0\n")
    with pytest.raises(FileError, match=r"other\.csv lacks the columns d, method, iteration, val"):
        pack([file], target)
    with pytest.raises(FileError, match=r"results\.csv has no results"):
        pack([folder_of(tmp_path / "empty")], target)
    assert not target.exists()
