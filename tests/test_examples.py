"""Every example runs as a user would run it, with few evaluations."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from amortes.command.spacefile import read_space
from amortes.pretrained import names

FOLDER = Path(__file__).parents[1] / "examples"
# What each prints, and the packages it needs besides ours.
EXAMPLES = {
    "scipy_style.py": ("all 6 trials are done.*best of 6: ", ()),
    "sklearn_tuning.py": ("best of 6: .*recommended: .* of the variation", ("sklearn",)),
    "sklearn_search.py": (r"best of 6 candidates: 0.* with .*'C'.*on test data: 0", ("sklearn",)),
    "batch_of_four.py": (r"8 evaluations, best 0\.\d+.*recommended: \{'a'", ()),
    "finite_pool.py": (r"best of 8 measured wines: \d+, number \d+ of 178", ("sklearn",)),
    "botorch_loop.py": ("recommended after 6 evaluations: .* regret ", ("botorch",)),
    "ray_tune.py": (r"best of 4: \d.* with .*'lr'.*recommended: ", ("ray.tune",)),
    "ax_node.py": (r"best of 6: \d.* with .*'lr'", ("ax",)),
    "optuna_study.py": ("best of 12: .* with .*'lr'", ("optuna",)),
}
BUDGET = {
    "ray_tune.py": "4",
    "batch_of_four.py": "8",
    "finite_pool.py": "8",
    "optuna_study.py": "12",
}


def run(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_examples_are_tested() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(EXAMPLES)


@pytest.mark.skipif(not names(), reason="no weights in the package")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    expected, packages = EXAMPLES[name]
    for package in packages:
        pytest.importorskip(package)
    printed = run(str(FOLDER / name), BUDGET.get(name, "6"))
    assert re.search(expected, printed, re.DOTALL), printed


def test_the_training_script_and_its_space() -> None:
    pytest.importorskip("sklearn")
    space = read_space(FOLDER / "command" / "space.toml")
    assert list(space.parameters) == ["lr", "width", "act"]
    options = ["--lr", "0.01", "--width", "4", "--act", "relu"]
    printed = run(str(FOLDER / "command" / "train.py"), *options)
    assert re.fullmatch(r"error: 0\.\d+", printed.strip())
