"""Finite sets of points: scored in chunks, so that memory does not grow with their number.

Of very many points only a shortlist is scored (`shortlist`), if rough means and standard deviations
of all are to be had; else all are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.acquisition.shortlist import MANY, Rough, shortlist
from amortes.errors import DataError

Score = Callable[[Tensor], Tensor]
"""Points `m x d` -> how good they are, `m`; differentiable by torch where a search climbs it."""

CHUNK = 1024
"""Points scored at once: 60 MB with the kernel network at n = 50."""
SAME = 1e-9
"""Points that differ by no more than this in any coordinate are the same point."""


@dataclass(frozen=True)
class Found:
    """The best point, its score, and whether it is none of those to exclude."""

    x: Tensor  # d
    value: float
    fresh: bool


@dataclass(frozen=True)
class FoundInPool(Found):
    """The same, and which row of the pool it is."""

    index: int


def maximise_pool(
    score: Score,
    pool: Tensor,
    *,
    exclude: Tensor | None = None,
    rough: Rough | None = None,
    weights: Sequence[Score] = (),
) -> FoundInPool:
    """The best of the points `m x d`, the first of equals.

    `exclude`, `e x d`, are points not to return, unless the pool has no others. With `rough`, the
    best of more than `MANY` points is the best of a shortlist; `weights` are logarithms of factors
    in the score that it has to know about.
    """
    if not pool.numel():
        raise DataError(f"the pool is empty: its shape is {tuple(pool.shape)}.")
    check_points(pool, pool.shape[-1], "pool")
    check_points(exclude, pool.shape[-1], "exclude")
    left = (~is_among(pool, exclude)).nonzero().flatten()
    fresh = len(left) > 0
    if not fresh:
        left = torch.arange(len(pool))
    points = pool[left]
    moments = rough(points) if rough is not None and len(points) > MANY else None
    if moments is None:
        values = evaluate(score, points)
    else:
        factors = [evaluate(weight, points) for weight in weights]
        factor = torch.stack(factors).sum(0) if factors else None
        values = shortlist(lambda X: evaluate(score, X), points, *moments, factor)
    best = int(values.argmax())
    if not values[best] > -math.inf:
        raise DataError("every point of the pool has a score of NaN or -inf.")
    index = int(left[best])
    return FoundInPool(pool[index], float(values[best]), fresh, index)


def evaluate(score: Score, X: Tensor) -> Tensor:
    """Scores of points `m x d` without gradients, -inf for NaN: `m`."""
    with torch.no_grad():
        parts = [score(X[i : i + CHUNK]) for i in range(0, len(X), CHUNK)]
    return torch.cat(parts).nan_to_num(-math.inf, math.inf, -math.inf)


def is_among(X: Tensor, points: Tensor | None) -> Tensor:
    """Which rows of `m x d` are one of the points `e x d`: `m`, bool."""
    if points is None or not len(points) or not len(X):
        return torch.zeros(len(X), dtype=torch.bool)
    starts = range(0, len(X), CHUNK)
    near = [torch.cdist(X[i : i + CHUNK], points, p=math.inf).amin(1) <= SAME for i in starts]
    return torch.cat(near)


def check_points(X: Tensor | None, d: int, name: str) -> None:
    """Raise DataError unless X is None or a finite float64 matrix with d columns."""
    if X is None:
        return
    if X.ndim != 2 or X.shape[1] != d or X.dtype != torch.float64:
        raise DataError(
            f"{name} must be a float64 matrix with {d} columns, not {X.dtype} of shape "
            f"{tuple(X.shape)}."
        )
    if not bool(X.isfinite().all()):
        raise DataError(f"{name} must be finite, but has NaN or infinity.")
