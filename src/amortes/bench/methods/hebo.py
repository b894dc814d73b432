"""HEBO with its default settings, on the unit cube.

HEBO (Cowen-Rivers et al., HEBO: Pushing The Limits of Sample-Efficient Hyper-parameter
Optimisation, JAIR 2022): a Gaussian process on power-transformed results, and a random point of the
Pareto front of EI, PI and UCB (MACE), found by evolution. It minimises, so it is told -y. At each
step all evaluations so far are told to a new optimiser, which is then asked for one suggestion. Its
model takes d + 1 points, so one is of its own design. Fitting is a part of asking and counts as
search.

HEBO 0.3.6 asks for old versions of NumPy and pymoo, but works with new ones. The extra `hebo` has
what it needs; it is installed after that, by `pip install --no-deps HEBO==0.3.6`.
"""

import contextlib
import warnings
from collections.abc import Iterator
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import torch
from hebo.acq_optimizers import evolution_optimizer
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from pymoo.optimize import minimize
from torch import Tensor

from amortes.bench.methods.random_search import WithoutModel
from amortes.bench.protocol import Problem


class HeboMethod(WithoutModel):
    """One run; no state is kept between steps."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.names = [f"x{k}" for k in range(problem.d)]
        self.space = DesignSpace().parse(
            [{"name": name, "type": "num", "lb": 0.0, "ub": 1.0} for name in self.names]
        )

    def _ask(self, X: Tensor, y: Tensor, seed: int) -> Tensor:
        with _seeded(seed):
            optimiser = HEBO(self.space, scramble_seed=seed)
            told = pd.DataFrame(X.numpy(), columns=self.names)
            optimiser.observe(told, -y.numpy()[:, None])
            asked = optimiser.suggest(1)[self.names].to_numpy(dtype=np.float64)[0]
        return self._nearest(torch.tensor(asked).clamp(0.0, 1.0), X)  # it has been float32


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let all that HEBO draws depend on the seed, and keep its warnings to itself.

    It uses the global generators of NumPy and torch; pymoo, which it calls for the evolution,
    wants a seed of its own.
    """
    state = np.random.get_state()  # noqa: NPY002
    seeded = mock.patch.object(evolution_optimizer, "minimize", partial(minimize, seed=seed))
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), seeded:
        warnings.simplefilter("ignore")
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
