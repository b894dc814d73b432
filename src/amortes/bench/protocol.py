"""What a benchmark is made of: problems, methods, and the loop that lets one work on the other.

A `Problem` is a function on the unit cube (or on a finite pool of points in it) to be *maximised*;
observations have Gaussian noise of a known size, or none. A `Method` sees observations only. After
each of them it recommends the point it believes best, whose noise-free value is what counts:

    inference regret = highest value of the function - value at the recommended point

For pools without noise the best observation is what counts, as users would take that one. Simple
regret comes from the point with the best observation, by its noise-free value, too.

A run goes from d random points to N observations (`optimise`):

    X_1..X_d uniform (of a pool: d different points of it),   y_n = f(x_n) + noise_sd * e_n

Everything is a pure function of (problem, method, seed). The first points and the e_n depend on the
problem and the seed, not on the method, nor on N: all methods of a seed start from the same
observations, and a longer run begins as a shorter one.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.random import derive_seeds, hashed
from amortes.threads import single_thread

SECONDS = ("fit_seconds", "search_seconds", "recommend_seconds")
"""What is timed of a step."""
_POINTS, _NOISE, _GLOBAL = range(3)  # streams of random numbers of a run


class Problem(ABC):
    """A function to be maximised on the unit cube; all tensors are float64."""

    name: str
    d: int
    noise_sd: float = 0.0
    best: float | None = None  # highest value of the function; None if nobody knows it
    pool: Tensor | None = None
    """The only points there are, `m x d`; None if the whole cube is allowed."""

    @property
    def best_is_seen(self) -> bool:
        """Whether the best observation is what is recommended: that of a pool without noise."""
        return self.pool is not None and self.noise_sd == 0

    @abstractmethod
    def value(self, X: Tensor) -> Tensor:
        """The function without noise at X, `m x d`: `m`. With a pool, X are points of it."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Problems of one family that are made, run and reported alike."""

    family: str
    names: tuple[str, ...]
    make: Callable[[str], Problem]
    iterations: int = 100  # observations of a run, unless a sweep says otherwise
    seeds: tuple[int, ...] = tuple(range(10))
    real: tuple[str, ...] = ()
    """Those in the suite `real`: some that users would know, so that no family decides and a seed
    of a method takes minutes; no accuracies that many configurations share, no large pools."""
    group: str = "other"  # what they are shown with in reports, a key of `report.names.GROUPS`
    panel: Callable[[str], str] = lambda name: name  # those with the same are averaged
    labels: Mapping[str, str] = field(default_factory=dict)
    """Titles of panels, in the order of the report; others have their names."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a method says after seeing n observations, and the seconds it took to say it."""

    x: Tensor  # d; the point to evaluate next
    recommended: Tensor  # d; believed to be the best point, after the same n observations
    fit_seconds: float  # conditioning, or fitting a model
    search_seconds: float  # maximising the acquisition function
    recommend_seconds: float  # maximising the posterior mean


class Method(Protocol):
    """A way of choosing points. Instances are made anew for each run and may keep state."""

    def step(self, X: Tensor, y: Tensor) -> Step:
        """Given X, `n x d`, and y, `n`, in order of evaluation; the last rows are new.

        Called once with the initial points, then after each evaluation of the x it returned.
        """
        ...


class MethodFactory(Protocol):
    """Makes a method for one run."""

    def __call__(self, problem: Problem, seed: int) -> Method:
        """`problem` tells d, pool, noise and name; its values and best are not to be looked at."""
        ...


def weights_digest(factory: MethodFactory) -> str:
    """What the weights of a method are, as the factory's `digest` says; empty if it has none."""
    return str(getattr(factory, "digest", ""))


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
        **{name: getattr(step, name) for name in SECONDS},
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
