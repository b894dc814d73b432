"""How good a base network is, against the fully Bayesian reference.

Per cell (dimension d, dataset size n) of `amortes.oracles.reference`, all exact given the tasks,
with no draw of y anywhere:

    excess      cross-entropy against N(m, v + s^2) less that of the reference, in nats
    cover_50    share of N(m, v + s^2) inside the central 50 % interval of q; cover_90 alike
    gain_x      drop in cross-entropy against N(f(x), s^2) when the network is told x*;
    gain_f      ... f*;  gain_both  ... both: the log-likelihood that the hint is worth.

Each is a mean over queries, then over datasets; the error of the excess is the standard deviation
between datasets / sqrt(datasets). Queries placed by looking at x* are left out throughout.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.nets.base import Hint, Network
from amortes.nets.distributions import Predictive
from amortes.oracles.reference import Cell, ReferenceCell, fair_mean
from amortes.prior.tasks import TaskBatch
from amortes.training.batches import take_rows

EASY_DIM, EASY_SIZE = 6, 45  # limits of the cells that have an average of their own


@dataclass(frozen=True, kw_only=True)
class BaseScore:
    """One row of `amortes evaluate base`."""

    network: str
    d: int | str
    n: int | str
    excess: float
    error: float
    cover_50: float
    cover_90: float
    gain_x: float
    gain_f: float
    gain_both: float


@torch.no_grad()
def base_score(
    name: str, network: Network[Any], cell: Cell, reference: ReferenceCell, datasets: int
) -> BaseScore:
    """Score a network on the first `datasets` datasets of a cell."""
    task = take_rows(reference.task, slice(datasets))
    state = network.condition(task.X, task.y)
    q = network.predict(state, task.Xq)
    variance = task.posterior_variance + task.noise_variance
    cross_entropy = fair_mean(q.cross_entropy(task.posterior_mean, variance), task)
    excess = cross_entropy - reference.cross_entropy[:datasets]
    blind = _against_truth(q, task)
    optimum = task.optimum
    hints = (Hint(x=optimum.x), Hint(f=optimum.f), Hint(optimum.x, optimum.f))
    gain_x, gain_f, gain_both = (
        (blind - _against_truth(network.predict(state, task.Xq, hint), task)).mean().item()
        for hint in hints
    )
    return BaseScore(
        network=name,
        d=cell[0],
        n=cell[1],
        excess=excess.mean().item(),
        error=(excess.std() / math.sqrt(len(excess))).item(),
        cover_50=_coverage(q, task, 0.5),
        cover_90=_coverage(q, task, 0.9),
        gain_x=gain_x,
        gain_f=gain_f,
        gain_both=gain_both,
    )


def average(scores: Sequence[BaseScore]) -> list[BaseScore]:
    """Means over the cells of one network: the easy ones, if there are others too, and all."""
    easy = [s for s in scores if int(s.d) <= EASY_DIM and int(s.n) <= EASY_SIZE]
    means = [_mean(scores, "all", "all")]
    if 0 < len(easy) < len(scores):
        means.insert(0, _mean(easy, f"<={EASY_DIM}", f"<={EASY_SIZE}"))
    return means


def _mean(scores: Sequence[BaseScore], d: str, n: str) -> BaseScore:
    count = len(scores)
    numbers = {
        field: sum(getattr(score, field) for score in scores) / count
        for field in ("excess", "cover_50", "cover_90", "gain_x", "gain_f", "gain_both")
    }
    # Cells are independent.
    error = math.sqrt(sum(score.error**2 for score in scores)) / count
    return BaseScore(network=scores[0].network, d=d, n=n, error=error, **numbers)


def _against_truth(q: Predictive, task: TaskBatch) -> Tensor:
    """Cross-entropy against y given the function itself, per dataset: `b`."""
    return fair_mean(q.cross_entropy(task.fq, task.noise_variance.expand_as(task.fq)), task)


def _coverage(q: Predictive, task: TaskBatch, level: float) -> float:
    """Share of the true predictive inside the central interval of q."""
    sd = (task.posterior_variance + task.noise_variance).sqrt()
    low, high = (
        torch.special.ndtr((q.icdf(torch.full_like(sd, p)) - task.posterior_mean) / sd)
        for p in (0.5 - level / 2, 0.5 + level / 2)
    )
    return fair_mean(high - low, task).mean().item()
