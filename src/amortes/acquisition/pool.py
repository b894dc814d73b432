"""The best of finitely many points.

They are scored in chunks, so that memory does not grow with their number. Of very many only a
shortlist is scored, if rough means and standard deviations of all are to be had. Scoring 100,000
points by the kernel network takes some ten seconds, their posterior means and standard deviations
under a few particles a fifth of one.

The shortlist has the `promising` points, the best by mean + c sd for several c, and some random
ones, because a score may also depend on other things, such as what a point tells about others. If
scores are weighed, by costs or chances of success, it has also those where the rise above the best
mean, so weighed, is largest. Then, as long as the best rises, the nearest unscored neighbours of
the best points join: a climb on the pool by the score itself.

On 8,000 points of six pools of HPO-B (n = 12, 30, 45) shortlists of 340 to 860 points had the best
point of all for PES, MES and JES every time (docs/log.md, "Shorter shortlists"); this one has about
450.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.acquisition.climb import Score
from amortes.acquisition.domain import check_points, is_among
from amortes.acquisition.search import Found, Rough, evaluate, promising
from amortes.errors import DataError
from amortes.random import generator

MANY = 1024
"""Points up to which all are scored."""
EACH, RANDOM = 48, 64
"""Points shortlisted for each factor c, and at random."""
TOP, NEIGHBOURS, ROUNDS = 8, 32, 8
"""Best points whose neighbours join, how many each, and how often at most."""


@dataclass(frozen=True)
class FoundInPool(Found):
    """What was found, and which row of the pool it is."""

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


def shortlist(
    evaluate: Callable[[Tensor], Tensor],
    X: Tensor,
    mean: Tensor,
    sd: Tensor,
    log_weight: Tensor | None = None,
) -> Tensor:
    """Scores of the points X, `m x d`, by `evaluate` where they are worth it, else -inf: `m`.

    `log_weight`, `m`, is the logarithm of what gains are multiplied by in the score.
    """
    values = X.new_full((len(X),), -math.inf)
    scored = torch.zeros(len(X), dtype=torch.bool)
    # Always the same random ones: what is best should not depend on anything else.
    new = torch.zeros_like(scored)
    new[torch.randperm(len(X), generator=generator(0))[:RANDOM]] = True
    new |= promising(mean, sd, EACH, log_weight)
    for i in range(ROUNDS + 1):
        before = values.max()
        values[new] = evaluate(X[new])
        scored |= new
        if bool(scored.all()) or (i > 1 and not bool(values.max() > before)):
            break
        distance = torch.cdist(X[values.topk(TOP).indices], X)
        distance[:, scored] = math.inf
        new = torch.zeros_like(scored)
        new[distance.topk(NEIGHBOURS, largest=False).indices] = True
        new &= ~scored
    return values
