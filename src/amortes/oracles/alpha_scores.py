"""How good an acquisition function is, against brute force in one and two dimensions.

For each of PES, MES and JES and each task of `amortes.oracles.alpha_tasks`:

    rank     Spearman's correlation over x of the acquisition with the brute-force gain
    regret   what is lost by measuring where the acquisition is highest: 1 - gain there / best gain

for three methods: the alpha network; Monte Carlo over the base network it learned from,

    H[q(y | D, x)] - mean over (x*, f*) of H[q(y | D, x, I)],    (x*, f*) from the exact posterior;

and BoTorch's approximations. Where brute force itself cannot tell the order, a task is left out:
its repeats disagree, or nothing is to be gained anywhere, so that its bias (up to 0.01 nats, see
`amortes.oracles.information`) decides. `ceiling` is the rank correlation that a perfect acquisition
can be expected to reach on the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.nets.base import GAINS, Hint, Network
from amortes.oracles.alpha_tasks import AlphaTask
from amortes.oracles.brute_force import rank_correlation
from amortes.oracles.reference import Cell

METHODS = ("alpha", "monte_carlo", "botorch")
RELIABLE = 0.8  # least reliability of a brute-force curve that can be compared with
RESOLUTION = 0.02  # least gain, in nats, that some query must have: twice the bias of brute force
CHUNK = 32  # optima per call of the base network


@dataclass(frozen=True, kw_only=True)
class AlphaScore:
    """Agreement of one method with brute force for one gain on one task."""

    cell: Cell
    gain: str
    method: str
    rank: float
    regret: float
    reliability: float


@torch.no_grad()
def alpha_gains(network: Network[Any], task: AlphaTask) -> Tensor:
    """Acquisition values of the alpha network at the task's queries: `q x 3`."""
    state = network.condition(task.X[None], task.y[None])
    return network.gain(state, task.Xq[None]).mean[0]


@torch.no_grad()
def monte_carlo_gains(
    network: Network[Any], X: Tensor, y: Tensor, Xq: Tensor, x_star: Tensor, f_star: Tensor
) -> Tensor:
    """Mean entropy that m optima, `m x d` and `m`, take from the base's predictions: `q x 3`."""
    after = []
    before = network.predict(network.condition(X[None], y[None]), Xq[None]).entropy()[0]
    for x, f in zip(*(torch.split(t, CHUNK) for t in (x_star, f_star)), strict=True):
        state = network.condition(X.expand(len(x), -1, -1), y.expand(len(x), -1))
        points = Xq.expand(len(x), -1, -1)
        hints = (Hint(x=x), Hint(f=f), Hint(x, f))
        after.append(
            torch.stack([network.predict(state, points, hint).entropy() for hint in hints], -1)
        )
    return before[:, None] - torch.cat(after).mean(0)


def alpha_scores(network: Network[Any], cell: Cell, task: AlphaTask) -> list[AlphaScore]:
    """Scores of all methods and gains on one task, where brute force is reliable."""
    optima = (task.x_star, task.f_star)
    curves = {
        "alpha": alpha_gains(network, task),
        "monte_carlo": monte_carlo_gains(network, task.X, task.y, task.Xq, *optima),
    }
    if task.botorch is not None:
        curves["botorch"] = task.botorch
    scores = []
    for i, name in enumerate(GAINS):
        truth, reliability = task.gain[:, i], task.reliability[i].item()
        if reliability < RELIABLE or truth.max() < RESOLUTION:
            continue
        for method, curve in curves.items():
            values = curve[:, i].double()
            scores.append(
                AlphaScore(
                    cell=cell,
                    gain=name,
                    method=method,
                    rank=rank_correlation(values, truth),
                    regret=(1.0 - truth[values.argmax()] / truth.max()).item(),
                    reliability=reliability,
                )
            )
    return scores


def summarise(scores: Sequence[AlphaScore]) -> list[dict[str, Any]]:
    """One row per cell and gain, then per dimension and gain: means over tasks."""
    rows = []
    cells = sorted({score.cell for score in scores})
    groups = [(d, str(n), [(d, n)]) for d, n in cells]
    groups += [(d, "all", [c for c in cells if c[0] == d]) for d in sorted({d for d, _ in cells})]
    for d, n, members in groups:
        for name in GAINS:
            chosen = [s for s in scores if s.cell in members and s.gain == name]
            row: dict[str, Any] = {"d": d, "n": n, "gain": name}
            row["tasks"] = len([s for s in chosen if s.method == "alpha"])
            for method in METHODS:
                own = [s for s in chosen if s.method == method]
                row[method] = sum(s.rank for s in own) / len(own) if own else None
                row[f"{method}_regret"] = sum(s.regret for s in own) / len(own) if own else None
            if chosen:
                # Two noisy copies of the truth correlate with r, one of them with the truth sqrt r.
                row["ceiling"] = sum(s.reliability**0.5 for s in chosen) / len(chosen)
                rows.append(row)
    return rows
