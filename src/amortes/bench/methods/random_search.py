"""Random search, and how methods without a model of their own recommend a point.

Inference regret needs a recommendation, for which a method without a model has two candidates: its
best observation, or the maximiser of a posterior mean fitted to its data. With the noise of the
paper's problems the best observation is mostly luck, and a curve of its regret would show how bad a
recommendation this is, not which points were chosen. So random search, Optuna's samplers and SMAC
recommend by the MAP Gaussian process of `map_gp`. Their users would have to add it to get as much:
what these methods return by themselves is the best observation. Its time counts as that of the
recommendation. Where there is no noise, the best observation it is.

In a pool the point nearest to what such a method asks for, of those not evaluated, is evaluated
instead, and that is what it hears of: a categorical parameter for the index of the point would keep
it from learning anything about points it has not seen.

Needs the extra `botorch`.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from amortes.bench.methods.map_gp import fit_map, posterior_mean
from amortes.bench.methods.steps import highest_unseen, recommend, timed_step
from amortes.bench.protocol import Problem, Step
from amortes.random import derive_seeds, generator, hashed


class WithoutModel(ABC):
    """One run of a method that is asked what to evaluate next, and does not recommend by itself."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.pool, self.seed = problem, problem.pool, seed

    def step(self, X: Tensor, y: Tensor) -> Step:
        """The next point and the recommended one, given X, `n x d`, and y, `n`."""
        seed = self._step_seed(len(X))
        return timed_step(
            lambda: self._tell(X, y, seed),
            lambda _: self._ask(X, y, seed),
            lambda _: recommend_without_model(self.problem, X, y, seed),
        )

    def _step_seed(self, n: int) -> int:
        """The seed of the step after n observations; NumPy's old generator takes 32 bits."""
        return int(derive_seeds(self.seed, n, count=1)[0] >> np.uint64(32))

    def _tell(self, X: Tensor, y: Tensor, seed: int) -> None:  # noqa: B027
        """What can be done before it is asked, and counts as fitting."""

    @abstractmethod
    def _ask(self, X: Tensor, y: Tensor, seed: int) -> Tensor:
        """The point to evaluate next, `d`."""

    def _nearest(self, x: Tensor, X: Tensor) -> Tensor:
        """The point x, `d`, or in a pool the nearest one that is not in X."""
        if self.pool is None:
            return x
        return highest_unseen(lambda Xq: -(Xq - x).norm(dim=1), self.pool, X)


class RandomSearch(WithoutModel):
    """Uniform points of the cube, or of what is left of the pool."""

    def _step_seed(self, n: int) -> int:
        return self.seed

    def _ask(self, X: Tensor, y: Tensor, seed: int) -> Tensor:
        rng = generator(hashed(self.problem.name), seed, len(X))
        if self.pool is None:
            return torch.rand(self.problem.d, generator=rng, dtype=torch.float64)
        return highest_unseen(lambda Xq: torch.rand(len(Xq), generator=rng), self.pool, X)


def recommend_without_model(problem: Problem, X: Tensor, y: Tensor, seed: int) -> Tensor:
    """The best observation, or with noise the best point by a MAP Gaussian process: `d`."""
    if problem.noise_sd == 0:
        return X[y.argmax()]
    return recommend(problem, X, y, lambda: posterior_mean(fit_map(X, y, seed)), seed)
