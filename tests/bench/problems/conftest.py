"""Small tables in the layout of the real ones, as a folder and as a package."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amortes.bench.problems import data
from amortes.files import sha256, write_json

RNG = np.random.Generator(np.random.Philox(key=5))
# A pool with a point that occurs twice, with different accuracies, and zeros of both signs.
POOL = np.array([[0.5, 0.25], [0.1, -0.0], [0.5, 0.25], [0.0, 1.0]], np.float32)
ACCURACIES = np.array([0.5, 0.9, 0.7, 0.6], np.float32)
RAW = np.column_stack(  # batch size, dropout, units, layers, learning rate, momentum, decay
    [
        RNG.integers(16, 513, 60),
        RNG.random(60),
        RNG.integers(64, 1025, 60),
        RNG.integers(1, 5, 60),
        10 ** RNG.uniform(-4, -1, 60),
        RNG.uniform(0.1, 0.99, 60),
        RNG.uniform(1e-5, 0.1, 60),
    ]
)
VALIDATION = 60 + 10 * np.log10(RAW[:, 4]) - 5 * RAW[:, 1] + RNG.standard_normal(60)
HYPERPARAMETERS = {
    "lengthscale": [0.6, 2.0, 0.8, 0.3, 0.4, 0.8, 1.0],
    "outputscale": 0.05,
    "noise_variance": 0.2,
    "mean_constant": 0.1,
}


def _save(monkeypatch: pytest.MonkeyPatch, known: str, path: Path, name: str, **a: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **a)
    _admit(monkeypatch, known, path, name)


def _admit(monkeypatch: pytest.MonkeyPatch, known: str, path: Path, name: str) -> None:
    digests: Mapping[str, str] = getattr(data, known)
    monkeypatch.setattr(data, known, {**digests, name: sha256(path)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "data"
    name = "hpob/hpob_5971.npz"
    _save(monkeypatch, "FOLDER_FILES", root / name, name, X_43=POOL, y_43=ACCURACIES)
    name = "lcbench/lcbench5.npz"
    arrays = {"X_raw": RAW, "segment__final_val_accuracy": VALIDATION}
    _save(monkeypatch, "FOLDER_FILES", root / name, name, **arrays)
    name = "lcbench/gp_surrogate_hyperparameters.json"
    write_json(root / name, {"segment": {"refit": HYPERPARAMETERS}})
    _admit(monkeypatch, "FOLDER_FILES", root / name, name)
    monkeypatch.setenv(data.VARIABLE, str(root))
    return root


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "site" / "bocode"
    inside = root / data.PACKAGE_FOLDER
    table = np.column_stack([POOL, ACCURACIES])
    name = "hpob_data.npz"
    _save(monkeypatch, "PACKAGE_FILES", inside / name, name, **{"5971_43": table})
    order = [0, 4, 1, 2, 5, 3, 6]
    table = np.column_stack([RAW[:, order], VALIDATION]).astype(np.float32)
    name = "lcbench_data.npz"
    _save(monkeypatch, "PACKAGE_FILES", inside / name, name, segment=table, Fashion_MNIST=table)
    (root / "__init__.py").write_text("raise RuntimeError('its code is not to be run')")
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(data, "BESIDE_THE_REPOSITORY", tmp_path / "nowhere")
    monkeypatch.setenv("AMORTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "bocode", raising=False)
    monkeypatch.syspath_prepend(str(root.parent))
    return root


@pytest.fixture
def real_data() -> data.Source:
    """The true tables, where they are."""
    try:
        source = data.find_source()
        source.file("hpob_data.npz" if source.is_package else "lcbench/lcbench5.npz")
    except OSError as error:
        pytest.skip(f"needs the data of LCBench and HPO-B: {error}")
    return source
