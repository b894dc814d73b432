import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_clean_keeps_results(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    paper, study = tmp_path / "out" / "paper", tmp_path / "out" / "study"
    for folder in (paper, study):
        folder.mkdir(parents=True)
        (folder / "results.csv").touch()
    subprocess.run(["make", "-s", "clean"], cwd=tmp_path, check=True)
    assert (paper / "results.csv").is_file()
    assert not study.exists()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_quick_tests_are_there() -> None:
    command = ["make", "--dry-run", "--always-make", "quick"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in said.splitlines() if "pytest" in line)
    places = [word.removeprefix("--ignore=") for word in line.split() if "tests/" in word]
    assert places
    assert all((ROOT / place).exists() for place in places)
