"""What `import amortes` costs: nothing is imported that is not needed."""

import json
import subprocess
import sys

import pytest

import amortes

# Extras, and what takes long to import and is for plots, progress bars or commands only.
NOT_NEEDED = {
    "ax",
    "botorch",
    "click",
    "fastapi",
    "gpytorch",
    "IPython",
    "jax",
    "joblib",
    "matplotlib",
    "optuna",
    "pandas",
    "plotly",
    "pyarrow",
    "ray",
    "rich",
    "scipy",
    "sklearn",
    "smac",
}


def imported_by(code: str) -> set[str]:
    """The packages that are there after some code has run in a fresh process."""
    code += "\nimport json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_amortes_imports_nothing_else() -> None:
    assert not imported_by("import amortes") & {"torch", "numpy", "safetensors", *NOT_NEEDED}


def test_optimising_needs_torch_and_numpy_only() -> None:
    code = """
from amortes import Categorical, Float, Int, Optimizer
opt = Optimizer({"x": Float(0, 1), "n": Int(1, 8, log=True), "c": Categorical(["a", "b"])})
opt.tell(opt.ask(), 1.0)
opt.state, str(opt)
"""
    found = imported_by(code)
    assert {"torch", "numpy"} <= found
    assert not found & NOT_NEEDED


@pytest.mark.parametrize("name", amortes.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(amortes, name).__name__.rpartition(".")[2] in (name, name.lower())
    assert name in dir(amortes)


def test_everything_can_be_imported_without_extras() -> None:
    code = """
import sys
sys.modules["botorch"] = None  # as if it were not installed
from amortes import *
Optimizer, minimize
import amortes
try:
    amortes.JES
except amortes.errors.MissingExtraError as error:
    assert "pip install amortes[botorch]" in str(error)
else:
    raise AssertionError
"""
    assert "gpytorch" not in imported_by(code)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        amortes.nothing  # noqa: B018
