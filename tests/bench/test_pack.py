from pathlib import Path

import numpy as np
import pytest

from amortes.bench.pack import pack
from amortes.bench.report.results import load_results
from amortes.errors import FileError

HEADER = "problem,d,noise_sd,method,seed,iteration,x,y,recommended,value,regret,fit_seconds,weights"


def sweep(folder: Path, *lines: str) -> Path:
    folder.mkdir()
    (folder / "results.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    return folder


def test_reports_read_it_as_they_read_the_sweeps(tmp_path: Path) -> None:
    one = sweep(
        tmp_path / "one",
        'branin,2,0.316,jes,10,2,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-1.2345678,1.63245432,0.123456,abc',
        'branin,2,0.316,jes,10,3,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-0.4,0.8,,abc',
        'branin,2,0.316,jes,9,2,"[0.1, 0.2]",1.5,"[0.1, 0.3]",-0.4,0.8,,abc',
    )
    two = sweep(tmp_path / "two", 'branin,2,0.316,jes,9,2,"[0.5, 0.5]",0.0,"[0, 0]",-0.2,0.6,,abc')
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
    folder = sweep(tmp_path / "one", "branin,2,0.3,jes,0,2,,,,-1.2,high,,")
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
        pack([sweep(tmp_path / "empty")], target)
    assert not target.exists()
