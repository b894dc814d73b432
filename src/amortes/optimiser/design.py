"""Points of a space chosen before there is anything to learn from: uniform, or spread out.

Both draw points of the unit cube, map them to configs and drop those that violate a constraint;
where hardly any is left, random walks among the constraints (`Domain.walk`) take over. Coordinates
may be fixed: to those of parameters whose values are given (`Space.coordinates`).
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.acquisition.domain import SAME
from amortes.errors import ConfigError, DataError
from amortes.optimiser.space import Space
from amortes.random import derive_seeds

BLOCK = 1024
# Draws without a single success after which walks take over, or a space counts as infeasible.
RARE, PATIENCE = 8 * BLOCK, 128 * BLOCK
# The same if every draw is a call of a user's function.
PATIENCE_CALLING = 32 * BLOCK

Fixed = Mapping[int, float]
"""Values of some coordinates by number."""


def agreeing(X: Tensor, fixed: Fixed) -> Tensor:
    """The rows of `n x d` with these coordinates."""
    columns, values = list(fixed), torch.tensor(list(fixed.values()), dtype=X.dtype)
    return X[((X[:, columns] - values).abs() <= SAME).all(1)]


def sample(
    space: Space,
    n: int,
    generator: torch.Generator,
    fixed: Fixed | None = None,
    *,
    draws: float = math.inf,
) -> Tensor:
    """Points of n independent configs, uniform over the space or its pool: `n x d`.

    Fewer if they are so rare that `draws` do not bring as many.
    """
    fixed = fixed or {}
    if space.pool is not None and space.points is not None:
        pool = agreeing(space.points, fixed)
        return pool[torch.randint(len(pool), (n,), generator=generator)]
    blocks: list[Tensor] = [torch.empty(0, space.d, dtype=torch.float64)]
    misses = drawn = 0
    while sum(map(len, blocks)) < n and drawn < draws:
        size = max(n, BLOCK) if space.constraints else n
        if _calls(space):
            size = max(n, min(64 << len(blocks), BLOCK))
        if misses >= RARE and len(space.rows[0]):
            seed = int(torch.randint(1 << 62, (1,), generator=generator))
            X = next(_walks(space, size, seed, fixed))
        else:
            U = torch.rand(size, space.d, generator=generator, dtype=torch.float64)
            X = space.project(_fix(U, fixed))
        drawn += size
        blocks.append(X[space.feasible(X)])
        misses = 0 if len(blocks[-1]) else misses + size
        _check_patience(misses, space)
    return torch.cat(blocks)[:n]


def sobol_points(space: Space, seed: int, fixed: Fixed | None = None) -> Iterator[Tensor]:
    """Distinct points `d` of a scrambled Sobol sequence, as configs; a pure function of the seed.

    With a pool, its member nearest to each point of the sequence among those not yet given. Ends
    when a finite space is exhausted, or all but: when no new config comes up in `PATIENCE` draws.
    """
    fixed = fixed or {}
    sobol: Any = SobolEngine  # untyped in torch
    engine = sobol(space.d, scramble=True, seed=seed)
    if space.pool is not None and space.points is not None:
        left = agreeing(space.points, fixed)
        while len(left):
            nearest = int(torch.cdist(engine.draw(1, dtype=torch.float64), left).argmin())
            yield left[nearest]
            left = torch.cat([left[:nearest], left[nearest + 1 :]])
        return
    free = [p for name, p in space.free.items() if space.places[name].start not in fixed]
    count = math.prod(p.cardinality or math.inf for p in free)
    if space.points is not None:
        count = len(agreeing(space.points, fixed))
    seen: set[tuple[float, ...]] = set()
    misses = 0
    size = 16
    walks: Iterator[Tensor] | None = None
    # Most points of walks are feasible, so no new one among a few thousand means that none is left.
    while misses < (RARE if walks and seen else _patience(space)) and len(seen) < count:
        if not seen and misses >= RARE and len(space.rows[0]):
            walks = walks or _walks(space, BLOCK, seed, fixed)
        if walks is not None:
            X = next(walks)
        else:
            X = space.project(_fix(engine.draw(size, dtype=torch.float64), fixed))
        misses, size = misses + size, min(2 * size, BLOCK)
        for x in X[space.feasible(X)]:
            point = tuple(x.tolist())
            if point not in seen:
                seen.add(point)
                misses = 0
                yield x
    if not seen:
        _check_patience(misses, space)


def _walks(space: Space, size: int, seed: int, fixed: Fixed) -> Iterator[Tensor]:
    """Blocks `size x d` of configs, most of which satisfy constraints that are linear in the cube.

    Without end.
    """
    try:
        allowed = space.domain(fixed)
    except DataError:
        raise ConfigError(
            "constraints: no config satisfies them, or hardly any. Check the signs of the "
            "coefficients (a Linear means sum <= upper). Instead of an equality, remove a "
            "parameter and compute it from the others."
        ) from None
    for block in itertools.count():
        block_seed = int(derive_seeds(seed, block, count=1)[0]) >> 1
        yield space.project(allowed.walk(size, block_seed))


def _fix(X: Tensor, fixed: Fixed) -> Tensor:
    """The points with some of their coordinates replaced."""
    for column, value in fixed.items():
        X[:, column] = value
    return X


def _calls(space: Space) -> bool:
    """Whether every draw is a call of a user's function."""
    return any(not function.vectorized for function in space.functions)


def _patience(space: Space) -> int:
    return PATIENCE_CALLING if _calls(space) else PATIENCE


def _check_patience(misses: int, space: Space) -> None:
    if misses < _patience(space):
        return
    advice = (
        "Check that your function returns True for allowed configs, narrow the bounds of the "
        "parameters, or list the allowed configs as a pool."
        if space.functions
        else "Check the signs of the coefficients (a Linear means sum <= upper), or narrow the "
        "bounds of the parameters."
    )
    raise ConfigError(f"constraints: none of {misses:,} random configs satisfies them. {advice}")
