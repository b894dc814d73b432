"""Which of very many points are worth a proper score.

Scoring 100,000 points by the kernel network takes some ten seconds, their posterior means and
standard deviations under a few particles a fifth of one. Most scores rise with both (all
functions of the two that reward promise and ignorance do), so their best points are where

    mean + c sd      is largest for some c >= 0.

The shortlist has the best points for several c, among them 0 and infinity, and some random ones,
because a score may also depend on other things, such as what a point tells about others. If scores
are weighed, by costs or chances of success, it has also those where the rise above the best mean,
so weighed, is largest. Then, as long as the best rises, the nearest unscored neighbours of the best
points join: a climb on the pool by the score itself.

On 8,000 points of six pools of HPO-B (n = 12, 30, 45) shortlists of 340 to 860 points had the best
point of all for PES, MES and JES every time (docs/log.md, "Shorter shortlists"); this one has about
450.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from amortes.random import generator

Rough = Callable[[Tensor], tuple[Tensor, Tensor] | None]
"""Points `m x d` -> means and standard deviations, `m` each, higher is better; None if unknown."""

MANY = 1024
"""Points up to which all are scored."""
OPTIMISM = (0.0, 0.5, 1.0, 2.0, 4.0, math.inf)
"""The factors c."""
EACH, RANDOM = 48, 64
"""Points shortlisted for each factor, and at random."""
SMALLEST = 1e-100
"""Rises below this count as this: they only matter where weights differ."""
TOP, NEIGHBOURS, ROUNDS = 8, 32, 8
"""Best points whose neighbours join, how many each, and how often at most."""


def promising(mean: Tensor, sd: Tensor, each: int, log_weight: Tensor | None = None) -> Tensor:
    """Which of m points are among the best `each` for one of the factors: `m`, bool."""
    chosen = torch.zeros(len(mean), dtype=torch.bool)
    for c in OPTIMISM:
        bound = sd if c == math.inf else mean + c * sd
        chosen[bound.topk(min(each, len(mean))).indices] = True
        if log_weight is not None:
            rise = sd if c == math.inf else bound - mean.max()
            weighed = rise.clamp_min(SMALLEST).log() + log_weight
            chosen[weighed.topk(min(each, len(mean))).indices] = True
    return chosen


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
