"""The point of a domain with the highest score.

1. Score many candidates: a low-discrepancy set with many points on the faces, and perturbations of
   the best points known at several scales, each of some of the coordinates. If the score goes by
   mean and standard deviation, and somebody knows these roughly, twice as many points of the set
   are looked at, and only the `promising` ones and a share of all are scored: most scores rise with
   both, so their best points are where mean + c sd is largest for some c >= 0.
2. Discrete parameters (`Domain.project`) first take jumps: random changes of some coordinates and
   crossings of two candidates, of which the best per start are kept.
3. From the best of both kinds of candidates, climb along gradients, all starts at once (`climb`).

Deterministic given the seed. `amortes bench search` compares it with BoTorch's `optimize_acqf`.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from amortes.acquisition.climb import Score, climb
from amortes.acquisition.domain import CHUNK, Domain, check_points, is_among
from amortes.errors import DataError, require_least
from amortes.random import derive_seeds

Rough = Callable[[Tensor], tuple[Tensor, Tensor] | None]
"""Points `m x d` -> means and standard deviations, `m` each, higher is better; None if unknown."""

OPTIMISM = (0.0, 0.5, 1.0, 2.0, 4.0, math.inf)
"""The factors c."""
SMALLEST = 1e-100
"""Rises below this count as this: they only matter where weights differ."""
SCALES = (-6.0, -0.5)
"""Powers of ten between which the scales of perturbations are."""
CHANGED, CROSSED = 0.25, 0.5
"""Share of the coordinates changed by a jump, and of the jumps that take them from a partner."""
LONGER, SMALLEST_STEP = 3.0, 1e-6
"""The first step of a climb, in distances from the nearest known point, and at least."""
WIDER, SPREAD, FAR, NEAR = 2, 8, 5, 4
"""With rough moments: how many times as many points of the low-discrepancy set are looked at; how
many of them are scored in any case; and the best for each of the factors c, among them and among
the perturbations."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Effort of the search. Measured: docs/log.md, 2026-11-16."""

    num_global: int = 128
    num_local: int = 128
    starts: int = 10
    coarse_steps: int = 4
    survivors: int = 4
    fine_steps: int = 9
    max_step: float = 0.2
    first_step: float = 0.1
    tolerance: float = 3e-3  # a rise worth a step, as a share of (best - worst start)
    jumps: int = 16  # changes of discrete parameters tried per start and round
    rounds: int = 3

    def __post_init__(self) -> None:
        least: dict[str, float] = {"num_global": 1, "starts": 1, "survivors": 1, "jumps": 1}
        least |= {"max_step": 1e-9, "first_step": 1e-9}
        require_least(self, **(dict.fromkeys(vars(self), 0.0) | least))


USUAL = SearchConfig()
TO_THE_TOP = SearchConfig(tolerance=0.0, fine_steps=30)
"""For the place of the maximum rather than its height, as in a recommendation."""


@dataclass(frozen=True)
class Found:
    """The best point, its score, and whether it is none of those to exclude."""

    x: Tensor  # d
    value: float
    fresh: bool


def maximise(
    score: Score,
    domain: Domain,
    *,
    seed: int,
    around: Tensor | None = None,
    exclude: Tensor | None = None,
    scale: Tensor | None = None,
    rough: Rough | None = None,
    config: SearchConfig = USUAL,
) -> Found:
    """The best point found in `domain`.

    `around`, `c x d`, are points worth looking close to, best first (say `Fitted.best_points`).
    `exclude`, `e x d`, are points not to return, unless the search meets no others. `scale`, `d`,
    are positive lengths over which the score varies along each coordinate, if anybody knows.
    `rough` tells where a score that goes by mean and standard deviation may be high.
    """
    check_points(around, domain.d, "around")
    check_points(exclude, domain.d, "exclude")
    check_points(None if scale is None else scale[None], domain.d, "scale")
    search = _Search(score, domain, exclude, scale, rough, config)
    found = search.run(seed, around)
    if found is None and exclude is not None:
        found = dataclasses.replace(search, exclude=None).run(seed, around)
        found = None if found is None else dataclasses.replace(found, fresh=False)
    if found is None:
        raise DataError(
            "the search met no valid point: every candidate has a score of NaN, or breaks "
            "A x <= b once its discrete parameters are rounded. Loosen the constraints."
        )
    return found


def evaluate(score: Score, X: Tensor) -> Tensor:
    """Scores of points `m x d` without gradients, -inf for NaN: `m`."""
    with torch.no_grad():
        parts = [score(X[i : i + CHUNK]) for i in range(0, len(X), CHUNK)]
    return torch.cat(parts).nan_to_num(-math.inf, math.inf, -math.inf)


def promising(mean: Tensor, sd: Tensor, each: int, log_weight: Tensor | None = None) -> Tensor:
    """Which of m points are among the best `each` for one of the factors: `m`, bool."""
    bounds = torch.stack([sd if c == math.inf else mean + c * sd for c in OPTIMISM])
    if log_weight is not None:
        rises = torch.cat([bounds[:-1] - mean.max(), bounds[-1:]])
        bounds = torch.cat([bounds, rises.clamp_min(SMALLEST).log() + log_weight])
    best = bounds.topk(min(each, len(mean)), dim=1).indices
    return torch.zeros(len(mean), dtype=torch.bool).index_fill(0, best.flatten(), True)


@dataclass(frozen=True)
class _Search:
    score: Score
    domain: Domain
    exclude: Tensor | None
    scale: Tensor | None
    rough: Rough | None
    config: SearchConfig

    def run(self, seed: int, around: Tensor | None) -> Found | None:
        """The best point met, None if none is allowed."""
        config = self.config
        sobol_seed, noise_seed = (int(s >> np.uint64(1)) for s in derive_seeds(seed, count=2))
        rng = torch.Generator().manual_seed(noise_seed)
        wider = 1 if self.rough is None else WIDER
        far = self.domain.sample(wider * config.num_global, sobol_seed)
        near = far[:0]
        if around is not None and len(around) and config.num_local:
            near = self._perturbed(around, rng)
        far, near = self._screened(far, FAR, SPREAD), self._screened(near, NEAR, 0)
        x = torch.cat([far, near])
        f = self._values(x) if len(x) else x.new_empty(0)
        if not bool((f > -math.inf).any()):
            return None
        from_near = min(config.starts // 2, len(near))
        from_far = min(config.starts - from_near, len(far))
        best_far = f[: len(far)].topk(from_far).indices
        best_near = f[len(far) :].topk(from_near).indices + len(far)
        starts = torch.cat([best_far, best_near])
        x, f = x[starts], f[starts]
        lowest = float(f[f > -math.inf].min())
        if self.domain.project is not None:
            x, f = self._jump(x, f, rng)
        x, f = climb(
            self.score,
            self.domain,
            self._allowed,
            x,
            f,
            coarse_steps=config.coarse_steps,
            fine_steps=config.fine_steps,
            survivors=config.survivors,
            max_step=config.max_step,
            first_step=self._first_steps(x, around),
            tolerance=config.tolerance,
            lowest=lowest,
            scale=self.scale,
        )
        best = int(f.argmax())
        return Found(x[best], float(f[best]), fresh=True)

    def _first_steps(self, x: Tensor, around: Tensor | None) -> Tensor:
        """How far starts `s x d` move at first: `s`; not much farther than they were perturbed."""
        farthest = x.new_full((len(x),), self.config.first_step)
        if around is None or not len(around):
            return farthest
        perturbed = torch.cdist(x, around, p=math.inf).amin(1)
        return (LONGER * perturbed).clamp_min(SMALLEST_STEP).minimum(farthest)

    def _screened(self, x: Tensor, each: int, spread: int) -> Tensor:
        """The points `m x d` that are worth a score, and the first `spread` of them."""
        if self.rough is None:
            return x
        x = x[self._allowed(x)]
        moments = self.rough(x) if len(x) else None
        if moments is None:
            return x
        worth = promising(*moments, each)
        worth[:spread] = True
        return x[worth]

    def _allowed(self, x: Tensor) -> Tensor:
        return self.domain.contains(x) & ~is_among(x, self.exclude)

    def _values(self, x: Tensor) -> Tensor:
        """Scores, -inf for points that may not be returned."""
        return evaluate(self.score, x).where(self._allowed(x), -math.inf)

    def _perturbed(self, around: Tensor, rng: torch.Generator) -> Tensor:
        """The points themselves, and moves of some of their coordinates at several scales."""
        count = self.config.num_local
        centres = self.domain.bring_in(around[:count], self.domain.centre)
        each = centres[torch.arange(count - len(centres)) % len(centres)]
        scale = torch.logspace(*SCALES, len(each), dtype=torch.float64)
        scale = scale[torch.randperm(len(each), generator=rng), None]
        noise = torch.randn(each.shape, generator=rng, dtype=torch.float64)
        # Between one coordinate and all of them.
        share = torch.rand(len(each), 1, generator=rng, dtype=torch.float64)
        u = torch.rand(each.shape, generator=rng, dtype=torch.float64)
        moved = u <= torch.maximum(share, u.amin(1, keepdim=True))
        return torch.cat([centres, self.domain.bring_in(each + scale * noise * moved, each)])

    def _jump(self, x: Tensor, f: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Improve starts x, `s x d`, whose scores are f, by changes that need no gradient."""
        domain, (s, d), j = self.domain, x.shape, self.config.jumps
        for _ in range(self.config.rounds):
            u = torch.rand(s, j, d, generator=rng, dtype=torch.float64)
            anew = domain.lower + u * (domain.upper - domain.lower)
            partner = x[torch.randint(s, (s, j), generator=rng)]
            crossed = torch.rand(s, j, 1, generator=rng, dtype=torch.float64) < CROSSED
            v = torch.rand(s, j, d, generator=rng, dtype=torch.float64)
            changed = (v < CHANGED) | (v == v.amin(-1, keepdim=True))  # one coordinate at least
            tried = torch.where(changed, torch.where(crossed, partner, anew), x[:, None])
            origin = x.repeat_interleave(j, dim=0)
            x_new = domain.bring_in(tried.flatten(0, 1), origin)
            f_new, best = self._values(x_new).reshape(s, j).max(dim=1)
            x_new = x_new.reshape(s, j, d)[torch.arange(s), best]
            x = torch.where((f_new > f)[:, None], x_new, x)
            f = torch.maximum(f, f_new)
        return x, f
