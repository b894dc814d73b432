"""How good an acquisition function is, against brute force in one and two dimensions.

With more dimensions, against the closed form with many draws (`many_draws`). For each of PES, MES
and JES and each task:

    rank     Spearman's correlation over x of the acquisition with the gain of the reference
    regret   what is lost by measuring where the acquisition is highest: 1 - gain there / best gain
    size     mean of the acquisition over the best quarter of the queries, as a multiple of the gain

for the trained network; of a kernel network the same with its gain network untrained, and with
draws of the optimum in its place; Monte Carlo over the base network,

    H[q(y | D, x)] - mean over (x*, f*) of H[q(y | D, x, I)],    (x*, f*) from the exact posterior;

and BoTorch's approximations. Where brute force itself cannot tell the order, a task is left out:
its repeats disagree, or nothing is to be gained anywhere, so that its bias (up to 0.01 nats, see
`amortes.oracles.information`) decides. `ceiling` is the rank correlation that a perfect acquisition
can be expected to reach on the others.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.files import AnyPath
from amortes.nets.base import GAINS, Hint, Network
from amortes.oracles.base_scores import TOLERANCE, Cell
from amortes.oracles.botorch_gains import botorch_gains
from amortes.oracles.brute_force import (
    GRID,
    BruteForce,
    BruteForceConfig,
    brute_force,
    rank_correlation,
)
from amortes.oracles.many_draws import many_draws, variants
from amortes.oracles.many_draws import queries as search_queries
from amortes.oracles.store import Entry, Store, rounded
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import derive_seeds
from amortes.training.recipes import EVALUATION_SEED

LATE = 50
SIZES = (3, 8, 20, LATE)
MAX_TASKS = 16  # tasks drawn per cell, of which the first few are used
DEFAULT_TASKS = 4  # as many are part of the package
QUERIES_PER_AXIS = {1: 64, 2: 10}
BEYOND = ((4, 20), (6, 50), (10, 50))  # cells with more dimensions
NEAR = 0.1  # half the width of the box of queries around the best observation, late
OPTIMA = 128
METHODS = ("learned", "untrained", "draws", "monte_carlo", "botorch")
MEANS = ("rank", "regret", "size")
RELIABLE = 0.8  # least reliability of a brute-force curve that can be compared with
RESOLUTION = 0.02  # least gain, in nats, that some query must have: twice the bias of brute force
CHUNK = 32  # optima per call of the base network


@dataclass(frozen=True)
class AlphaTask:
    """One dataset, its queries, and what the reference found there."""

    X: Tensor  # n x d
    y: Tensor  # n
    Xq: Tensor  # q x d
    gain: Tensor  # q x 3, in the order of GAINS
    error: Tensor  # 3, standard error averaged over the queries
    reliability: Tensor  # 3, see `BruteForce`
    x_star: Tensor  # OPTIMA x d, draws from the posterior; none with more dimensions
    f_star: Tensor  # OPTIMA
    botorch: Tensor | None = None  # q x 3


def grid(prior: GPPrior) -> list[Cell]:
    """All cells whose dimension the prior covers."""
    cells = [*((d, n) for d in GRID for n in SIZES), *BEYOND]
    return [(d, n) for d, n in cells if prior.min_dim <= d <= prior.max_dim]


def queries(X: Tensor, y: Tensor) -> Tensor:
    """The queries of a task, `q x d`: an even grid, over everything or near the best point."""
    n, d = X.shape
    line = torch.linspace(0.0, 1.0, QUERIES_PER_AXIS[d], dtype=torch.float64)
    even = torch.cartesian_prod(*[line] * d).view(-1, d)
    if n < LATE:
        return even
    best = X[y.argmax()]
    low, high = (best - NEAR).clamp_min(0.0), (best + NEAR).clamp_max(1.0)
    return low + (high - low) * even


def alpha_tasks(
    network: Network[Any],
    prior: GPPrior,
    cells: Sequence[Cell],
    count: int,
    *,
    botorch: bool,
    cache: AnyPath | None = None,
    config: BruteForceConfig | None = None,
    on_task: Callable[[str], object] = lambda label: None,
) -> Iterator[tuple[Cell, AlphaTask]]:
    """The first `count` tasks of each cell, computed where they are not stored yet.

    Beyond two dimensions the reference is the network's own, with many draws.

    `on_task` is called with the name of each task before work on it begins.
    """
    if not 1 <= count <= MAX_TASKS:
        raise ConfigError(f"tasks: must be in 1..{MAX_TASKS}, not {count}.")
    config = config or BruteForceConfig()
    task_config = TaskConfig(batch_size=MAX_TASKS)
    settings = {
        "seed": EVALUATION_SEED,
        "task": dataclasses.asdict(task_config),
        "queries": [QUERIES_PER_AXIS, NEAR, LATE],
        "grid": GRID,
        "config": dataclasses.asdict(config),
    }
    store = Store("alpha", prior, settings, cache)
    stream = TaskStream(prior, EVALUATION_SEED, task_config)
    for cell in cells:
        batch = stream.batch_of(1, *cell)
        for i in range(count):
            label = f"d={cell[0]} n={cell[1]} task {i}"
            on_task(label)
            X, y = batch.X[i], batch.y[i]
            seed = int(derive_seeds(EVALUATION_SEED, *X.shape, i, count=1)[0] >> 1)
            if cell[0] not in QUERIES_PER_AXIS:
                Xq = search_queries(X, y, seed)
                gain, reliability = many_draws(network, X, y, Xq)
                yield cell, AlphaTask(X, y, Xq, gain, torch.zeros(3), reliability, X[:0], y[:0])
                continue
            Xq = queries(X, y)
            entry = store.find(label, partial(_belongs, y))
            if entry is None:
                entry = _compute(brute_force(prior, X, y, Xq, seed, config), y)
                store.put(label, entry)
            if botorch and "botorch" not in entry:
                entry["botorch"] = rounded(botorch_gains(prior, X, y, Xq, seed).tolist())
                store.put(label, entry)
            names = ("gain", "error", "reliability", "x_star", "f_star", "botorch")[: 5 + botorch]
            found = {name: torch.tensor(entry[name], dtype=torch.float64) for name in names}
            yield cell, AlphaTask(X, y, Xq, **found)


def _belongs(y: Tensor, entry: Entry) -> bool:
    return bool(abs(entry["mean_y"] - y.mean().item()) < TOLERANCE)


def _compute(result: BruteForce, y: Tensor) -> Entry:
    """Everything about a task that does not depend on a network, as JSON."""
    thin = torch.arange(OPTIMA) * len(result.f_star) // OPTIMA
    columns = {
        "mean_y": y.mean(),
        "gain": result.gain,
        "error": result.error.mean(0),
        "reliability": result.reliability,
        "x_star": result.x_star[thin],
        "f_star": result.f_star[thin],
    }
    return {name: rounded(column.tolist()) for name, column in columns.items()}


@dataclass(frozen=True, kw_only=True)
class AlphaScore:
    """Agreement of one method with the reference for one gain on one task."""

    cell: Cell
    gain: str
    method: str
    rank: float
    regret: float
    size: float
    reliability: float


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


@torch.no_grad()
def alpha_scores(network: Network[Any], cell: Cell, task: AlphaTask) -> list[AlphaScore]:
    """Scores of all methods and gains on one task, where brute force is reliable."""
    optima = (task.x_star, task.f_star)
    data = task.X[None], task.y[None]
    curves = {
        name: variant.gain(variant.condition(*data), task.Xq[None]).mean[0]
        for name, variant in variants(network).items()
    }
    if len(task.x_star):
        curves["monte_carlo"] = monte_carlo_gains(network, task.X, task.y, task.Xq, *optima)
    if task.botorch is not None:
        curves["botorch"] = task.botorch
    scores = []
    for i, name in enumerate(GAINS):
        truth, reliability = task.gain[:, i], task.reliability[i].item()
        if reliability < RELIABLE or truth.max() < RESOLUTION:
            continue
        best = truth.topk(len(truth) // 4).indices
        for method, curve in curves.items():
            values = curve[:, i].double()
            scores.append(
                AlphaScore(
                    cell=cell,
                    gain=name,
                    method=method,
                    rank=rank_correlation(values, truth),
                    regret=(1.0 - truth[values.argmax()] / truth.max()).item(),
                    size=(values[best].mean() / truth[best].mean()).item(),
                    reliability=reliability,
                )
            )
    return scores


def summarise(scores: Sequence[AlphaScore]) -> list[dict[str, Any]]:
    """One row per cell, gain and method, then per dimension, gain and method: means over tasks."""
    rows = []
    cells = sorted({score.cell for score in scores})
    groups = [(d, str(n), [(d, n)]) for d, n in cells]
    groups += [(d, "all", [c for c in cells if c[0] == d]) for d in sorted({d for d, _ in cells})]
    for (d, n, members), name, method in itertools.product(groups, GAINS, METHODS):
        own = [s for s in scores if (s.gain, s.method) == (name, method) and s.cell in members]
        if own:
            means = {field: fmean(getattr(s, field) for s in own) for field in MEANS}
            row = {"d": d, "n": n, "gain": name, "method": method, "tasks": len(own), **means}
            # Two noisy copies of the truth correlate with r, one of them with the truth sqrt r.
            rows.append(row | {"ceiling": fmean(s.reliability**0.5 for s in own)})
    return rows
