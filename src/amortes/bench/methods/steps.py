"""A step that is timed, and what methods with a model have in common: they recommend by its mean.

The recommended point is the maximiser of the posterior mean over the cube, or over the pool (if
that has no noise, the best observation is what counts, and nothing needs to be computed). All
methods find it by the same search (`amortes.acquisition.maximise`), so that differences in regret
are those of data and models, not of how well somebody's mean was maximised. It goes on until
nothing rises any more: with the default effort the maximiser on Hartmann-6 (n = 20) depended on the
seed, with a standard deviation of 0.18 in a coordinate of little influence; now of 1e-8.
"""

import itertools
import time
from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from amortes.acquisition import TO_THE_TOP, Domain, Score, evaluate, maximise, maximise_pool
from amortes.bench.protocol import SECONDS, Problem, Step
from amortes.errors import DataError
from amortes.optimiser.suggest import AROUND

Model = TypeVar("Model")


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
    taken = (b - a for a, b in itertools.pairwise(ticks))
    return Step(x=x, recommended=recommended, **dict(zip(SECONDS, taken, strict=True)))


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
