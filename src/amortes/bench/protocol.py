"""What a benchmark is made of: problems, methods, and the loop that lets one work on the other.

A `Problem` is a function on the unit cube (or on a finite pool of points in it) to be *maximised*;
observations have Gaussian noise of a known size, or none. A `Method` sees observations only. After
each of them it recommends the point it believes best, whose noise-free value is what counts:

    inference regret = highest value of the function - value at the recommended point

For pools without noise the best observation is what counts, as users would take that one.

Everything is a pure function of (problem, method, seed): initial points and noise are shared by all
methods of a seed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor


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
