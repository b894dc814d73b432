"""What all methods with a model have in common: fit it, search it, recommend by its mean.

The recommended point is the maximiser of the posterior mean over the cube, or over the pool (if
that has no noise, the best observation is what counts, and nothing needs to be computed). All
methods find it by the same search (`amortes.acquisition.maximise`), so that differences in regret
are those of data and models, not of how well somebody's mean was maximised. It goes on until
nothing rises any more: with the default effort the maximiser on Hartmann-6 (n = 20) depended on the
seed, with a standard deviation of 0.18 in a coordinate of little influence; now of 1e-8.
"""

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from amortes.acquisition import TO_THE_TOP, Domain, Score, evaluate, maximise, maximise_pool
from amortes.bench.protocol import Problem, Step
from amortes.errors import DataError
from amortes.optimiser.suggest import AROUND
from amortes.random import derive_seeds

Model = TypeVar("Model")


class ModelBased(ABC, Generic[Model]):
    """One run of a method that fits a `Model` to all data at each step."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.d, self.pool, self.seed = problem, problem.d, problem.pool, seed

    def step(self, X: Tensor, y: Tensor) -> Step:
        """Fit, search and recommend, given X, `n x d`, and y, `n`; a function of them and n."""
        # BoTorch and JAX take seeds of 32 bits.
        seeds = [int(s >> np.uint64(33)) for s in derive_seeds(self.seed, len(X), count=3)]
        return timed_step(
            lambda: self.fit(X, y, seeds[0]),
            lambda model: self.search(model, X, seeds[1]),
            lambda model: recommend(self.problem, X, y, lambda: self.mean(model), seeds[2]),
        )

    @abstractmethod
    def fit(self, X: Tensor, y: Tensor, seed: int) -> Model:
        """The model of X, `n x d`, and y, `n`."""

    @abstractmethod
    def search(self, model: Model, X: Tensor, seed: int) -> Tensor:
        """The point to evaluate next, `d`, after X; from a pool, one not among them."""

    @abstractmethod
    def mean(self, model: Model) -> Score:
        """The posterior mean, increasing in that of y."""


def timed_step(
    fit: Callable[[], Model],
    search: Callable[[Model], Tensor],
    recommend: Callable[[Model], Tensor],
) -> Step:
    """What a method says, and the seconds it took; a search begins with what fitting gave."""
    ticks = [time.perf_counter()]
    model = fit()
    ticks.append(time.perf_counter())
    x = search(model)
    ticks.append(time.perf_counter())
    recommended = recommend(model)
    ticks.append(time.perf_counter())
    fitting, searching, recommending = (b - a for a, b in itertools.pairwise(ticks))
    return Step(
        x=x,
        recommended=recommended,
        fit_seconds=fitting,
        search_seconds=searching,
        recommend_seconds=recommending,
    )


def recommend(
    problem: Problem, X: Tensor, y: Tensor, mean: Callable[[], Score], seed: int
) -> Tensor:
    """Where the posterior mean is highest, `d`: in the pool, or in the cube.

    `mean` is only asked for if the best observation will not do.
    """
    if problem.best_is_seen:
        return X[y.argmax()]
    score = mean()
    if problem.pool is not None:
        return maximise_pool(score, problem.pool).x
    around = X[evaluate(score, X).argsort(descending=True, stable=True)[:AROUND]]
    return maximise(score, Domain.cube(problem.d), seed=seed, around=around, config=TO_THE_TOP).x


def highest_unseen(score: Score, pool: Tensor, X: Tensor) -> Tensor:
    """The point of the pool with the highest score, `d`, that is not in X."""
    found = maximise_pool(score, pool, exclude=X)
    if not found.fresh:
        raise DataError(f"all {len(pool)} points of the pool have been evaluated; ask for fewer.")
    return found.x


def in_chunks(score: Score, size: int) -> Score:
    """The same score, computed for at most `size` points at once to save memory."""
    return lambda X: torch.cat([score(part) for part in torch.split(X, size)])
