"""HPO-B: hyperparameter optimisation from tables (Pineda Arango et al., NeurIPS 2021 D&B).

Each problem is a finite pool: the configurations of one search space that were evaluated on one
data set, scaled to the unit cube, with their accuracies; no noise. The meta-test tasks of the five
search spaces that the paper uses, with the logarithms of "FixedHPO-B".

A few configurations of space 5527 occur twice. They are one point, with the better accuracy.
"""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.bench.problems.data import Pool, Source, find_source, load_arrays
from amortes.bench.protocol import Kind

TASKS: dict[str, tuple[str, ...]] = {  # OpenML data sets of each search space
    "5527": ("146064", "146065", "9914", "145804", "31", "10101"),
    "5891": ("9889", "3899", "6566", "9980", "3891", "3492"),
    "7609": ("145854", "3903", "9967", "145853", "34537", "125923", "145878"),
    "5965": ("145836", "9914", "3903", "10101", "9889", "49", "9946"),
    "5971": ("10093", "3954", "43", "34536", "9970", "6566"),
}
DIMENSIONS = {"5527": 8, "5891": 8, "7609": 9, "5965": 10, "5971": 16}
NAMES = tuple(f"hpob-{space}-{task}" for space, tasks in TASKS.items() for task in tasks)


def make_hpob(name: str) -> Pool:
    """A pool of evaluated configurations, by a name such as `hpob-5971-9970`."""
    _, space, task = name.split("-")
    return Pool(name, *_pool(find_source(), space, task))


@functools.lru_cache(maxsize=8)
def _pool(source: Source, space: str, task: str) -> tuple[Tensor, Tensor]:
    """Distinct points, `m x d`, in the order of the table, and the best accuracy of each, `m`."""
    X, y = read_table(source, space, task)
    distinct, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    np.maximum.at(best, inverse.reshape(-1), y)
    order = np.argsort(first)
    return torch.from_numpy(distinct[order]), torch.from_numpy(best[order])


def read_table(source: Source, space: str, task: str) -> tuple[Any, Any]:
    """Configurations, `n x d`, and accuracies, `n`, as float64."""
    if source.is_package:
        [table] = load_arrays(source.file("hpob_data.npz"), [f"{space}_{task}"])
        X, y = table[:, :-1], table[:, -1]
    else:
        path = source.file(f"hpob/hpob_{space}.npz")
        X, y = load_arrays(path, [f"X_{task}", f"y_{task}"])
    return X.astype(np.float64), y.astype(np.float64)


KIND = Kind(
    family="hpob",
    names=NAMES,
    make=make_hpob,
    iterations=50,
    seeds=tuple(range(5)),
    real=("hpob-5527-146064", "hpob-5891-9889", "hpob-7609-145854", "hpob-5971-10093"),
    group="hpob",
    panel=lambda name: name.rpartition("-")[0],
    labels={f"hpob-{space}": f"HPO-B {space}, {DIMENSIONS[space]}-D" for space in TASKS},
)
