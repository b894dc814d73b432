"""One run: a method works on a problem, from d random points to N observations.

    X_1..X_d uniform (of a pool: d different points of it),   y_n = f(x_n) + noise_sd * e_n

The first points and the e_n depend on the problem and the seed, not on the method, nor on N: all
methods of a seed start from the same observations, and a longer run begins as a shorter one.

After each observation n = d..N there is a `Record` of the recommended point and its noise-free
value, from which inference regret comes. Of a pool without noise, that is the best point observed,
as users would take that one. Simple regret comes from the point with the best observation, by its
noise-free value, too.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.bench.protocol import MethodFactory, Problem, Step
from amortes.errors import ConfigError, DataError
from amortes.random import derive_seeds, hashed
from amortes.threads import single_thread

_POINTS, _NOISE, _GLOBAL = range(3)  # streams of random numbers of a run


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was known after n observations, the last of which was y at x."""

    iteration: int  # n, which counts the initial points
    x: list[float]
    y: float
    recommended: list[float]
    value: float  # of the function at the recommended point, without noise
    regret: float | None  # None if nobody knows the highest value
    simple_value: float  # of the function at the point with the best observation, without noise
    simple_regret: float | None
    fit_seconds: float
    search_seconds: float
    recommend_seconds: float
    threads: int


def initial_points(problem: Problem, seed: int) -> Tensor:
    """The first d points of all methods, `d x d`."""
    rng = _stream(problem, seed, _POINTS)
    if problem.pool is None:
        return torch.from_numpy(rng.random((problem.d, problem.d)))
    if len(problem.pool) < problem.d:
        raise ConfigError(f"{problem.name}: its pool has {len(problem.pool)} < d points.")
    places = rng.choice(len(problem.pool), problem.d, replace=False)
    return problem.pool[torch.from_numpy(places)]


def noise(problem: Problem, seed: int, count: int) -> Tensor:
    """The errors of the first `count` observations of all methods."""
    # NumPy's stream does not depend on how many numbers are drawn at once; torch's does.
    errors = _stream(problem, seed, _NOISE).standard_normal(count)
    return problem.noise_sd * torch.from_numpy(errors)


def optimise(
    problem: Problem, factory: MethodFactory, *, seed: int, iterations: int
) -> list[Record]:
    """Let a new method work on the problem until there are `iterations` observations."""
    if iterations < problem.d:
        raise ConfigError(
            f"{problem.name}: needs at least its {problem.d} initial points, "
            f"not {iterations} iterations."
        )
    errors = noise(problem, seed, iterations)
    X = initial_points(problem, seed)
    f = problem.value(X)
    records = []
    with _isolated(problem, seed):
        method = factory(problem, seed)
        for n in range(problem.d, iterations + 1):
            y = f + errors[:n]
            step = method.step(X.clone(), y.clone())
            records.append(_record(problem, X, y, f, step))
            if n < iterations:
                x = _checked(problem, step.x, "x")
                X = torch.cat([X, x[None]])
                f = torch.cat([f, problem.value(x[None])])
    return records


def _record(problem: Problem, X: Tensor, y: Tensor, f: Tensor, step: Step) -> Record:
    recommended = X[y.argmax()]
    if not problem.best_is_seen:
        recommended = _checked(problem, step.recommended, "recommended")
    value, simple = float(problem.value(recommended[None])), float(f[y.argmax()])
    return Record(
        iteration=len(X),
        x=X[-1].tolist(),
        y=float(y[-1]),
        recommended=recommended.tolist(),
        value=value,
        regret=None if problem.best is None else problem.best - value,
        simple_value=simple,
        simple_regret=None if problem.best is None else problem.best - simple,
        fit_seconds=step.fit_seconds,
        search_seconds=step.search_seconds,
        recommend_seconds=step.recommend_seconds,
        threads=torch.get_num_threads(),
    )


def _checked(problem: Problem, x: Tensor, name: str) -> Tensor:
    """The point a method returned, in float64, if it is one of the unit cube."""
    x = x.detach().to(torch.float64)
    if x.shape != (problem.d,) or not bool(((x >= 0) & (x <= 1)).all()):
        raise DataError(
            f"{name}: expected a point of the unit cube with {problem.d} coordinates, "
            f"not {x.tolist()}."
        )
    return x


@contextlib.contextmanager
def _isolated(problem: Problem, seed: int) -> Iterator[None]:
    """One thread; and for methods of others that use it, torch's global generator, seeded."""
    with single_thread(), _blas_single_thread(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_key(problem, seed, _GLOBAL) >> 1)
        yield


def _blas_single_thread() -> contextlib.AbstractContextManager[Any]:
    """One thread for NumPy, SciPy and scikit-learn, too, if scikit-learn brought what it takes."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def _stream(problem: Problem, seed: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=_key(problem, seed, purpose)))


def _key(problem: Problem, seed: int, purpose: int) -> int:
    return int(derive_seeds(hashed(problem.name), seed, purpose, count=1)[0])
