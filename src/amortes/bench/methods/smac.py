"""SMAC by ask and tell, with the default settings of two of its facades, on the unit cube.

    bb     BlackBoxFacade: Gaussian process, expected improvement
    hpo    HyperparameterOptimizationFacade: random forest, expected improvement of log costs

SMAC3 (Lindauer et al., JMLR 2022) minimises, so it is told -y. Its own initial design is empty: the
points that all methods share are told instead. One optimiser lives as long as the run, as a user's
would, because some of SMAC's choices outlast a step: a forest is fitted once for eight proposals.
Fitting is a part of asking and counts as search.

In a pool what it had asked for stays unanswered, which SMAC allows; its models are fitted to
answers only. Needs the extras `smac` (2.4 is the first that goes without a design) and `botorch`.
"""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from ConfigSpace import Configuration, ConfigurationSpace, Float
from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
from smac.runhistory import TrialInfo, TrialValue
from torch import Tensor

from amortes.bench.methods.random_search import WithoutModel
from amortes.bench.protocol import Problem
from amortes.random import derive_seeds, hashed

FACADES = {"bb": BlackBoxFacade, "hpo": HyperparameterOptimizationFacade}


class SmacMethod(WithoutModel):
    """One run with the facade bb or hpo, to be stepped through from its first points on."""

    def __init__(self, problem: Problem, seed: int, facade: str) -> None:
        super().__init__(problem, seed)
        self.space = ConfigurationSpace(space=[Float(f"x{k}", (0, 1)) for k in range(problem.d)])
        # NumPy's old generator takes 32 bits. With the name, random proposals do not come at the
        # same steps and places of all problems.
        mixed = derive_seeds(hashed(problem.name), seed, count=1)[0] >> np.uint64(32)
        self.smac = _optimiser(FACADES[facade], self.space, int(mixed))
        self.told = 0

    def _step_seed(self, n: int) -> int:
        return self.seed

    def _tell(self, X: Tensor, y: Tensor, seed: int) -> None:
        with _quiet_and_alone():
            for x, value in zip(X[self.told :].tolist(), y[self.told :].tolist(), strict=True):
                config = Configuration(self.space, values=dict(zip(self.space, x, strict=True)))
                # The seed is that of the function, which has none; it must be the same for all.
                self.smac.tell(TrialInfo(config, seed=0), TrialValue(cost=-value), save=False)
        self.told = len(X)

    def _ask(self, X: Tensor, y: Tensor, seed: int) -> Tensor:
        with _quiet_and_alone():
            config = self.smac.ask().config
        x = torch.tensor([config[name] for name in self.space], dtype=torch.float64)
        return self._nearest(x, X)


def _optimiser(facade: Any, space: ConfigurationSpace, seed: int) -> Any:
    """A facade that has seen nothing, proposes no points of its own design and keeps no files."""
    # Files are written when a facade is made, and by `tell` if it is to save.
    with tempfile.TemporaryDirectory() as folder, _quiet_and_alone():
        scenario = Scenario(space, output_directory=Path(folder), deterministic=True, seed=seed)
        maximiser = facade.get_acquisition_maximizer(scenario)
        _sort_starts(maximiser._local_search)
        return facade(
            scenario,
            initial_design=facade.get_initial_design(scenario, n_configs=0),
            acquisition_maximizer=maximiser,
            logging_level=False,
        )


def _sort_starts(search: Any) -> None:
    """Let a local search begin with its points in order, for the same result in every process.

    They come from a set whose order depends on the hashes of strings, which are random, and all
    climbs draw from one generator. The order means nothing to SMAC.
    """
    unsorted = search._search
    search._search = lambda starts: unsorted(sorted(starts, key=lambda c: tuple(c.get_array())))


@contextlib.contextmanager
def _quiet_and_alone() -> Iterator[None]:
    """Errors only from SMAC's loggers, and no threads for its forests, which ask for all cores."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with joblib.parallel_config(backend="sequential"):
            yield
    finally:
        logger.setLevel(level)
