"""Fixed tasks in one and two dimensions with their brute-force gains, for scoring alpha networks.

A *cell* is a dimension and a dataset size. With few observations the queries are spread over the
whole domain; with `LATE` many they lie near the best observation, because late in an optimisation
the gains are tiny and only their order there matters.

Brute force takes a minute per task, so results are kept (`amortes.oracles.store`), together with
draws of the optimum for Monte Carlo over a base network and BoTorch's gains for comparison.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.files import AnyPath
from amortes.oracles.botorch_gains import botorch_gains
from amortes.oracles.brute_force import GRID, BruteForceConfig, brute_force
from amortes.oracles.reference import TOLERANCE, Cell
from amortes.oracles.store import Entry, Store, rounded
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import derive_seeds
from amortes.training.recipes import EVALUATION_SEED

LATE = 50
SIZES = (3, 8, 20, LATE)
MAX_TASKS = 16  # tasks drawn per cell, of which the first few are used
DEFAULT_TASKS = 4  # as many are part of the package
QUERIES_PER_AXIS = {1: 64, 2: 10}
NEAR = 0.1  # half the width of the box of queries around the best observation, late
OPTIMA = 128


@dataclass(frozen=True)
class AlphaTask:
    """One dataset, its queries, and what brute force found there."""

    X: Tensor  # n x d
    y: Tensor  # n
    Xq: Tensor  # q x d
    gain: Tensor  # q x 3, in the order of GAINS
    error: Tensor  # 3, standard error averaged over the queries
    reliability: Tensor  # 3, see `BruteForce`
    x_star: Tensor  # OPTIMA x d, draws from the posterior
    f_star: Tensor  # OPTIMA
    botorch: Tensor | None  # q x 3


def grid(prior: GPPrior) -> list[Cell]:
    """All cells whose dimension the prior covers."""
    return [(d, n) for d in GRID if prior.min_dim <= d <= prior.max_dim for n in SIZES]


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

    `on_task` is called with the name of each task before work on it begins.
    """
    if not 1 <= count <= MAX_TASKS:
        raise ConfigError(f"tasks: must be in 1..{MAX_TASKS}, not {count}.")
    for d, _ in cells:
        if d not in QUERIES_PER_AXIS:
            raise ConfigError(f"cells: brute force is for d in 1, 2 only, not for d={d}.")
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
            yield cell, _alpha_task(prior, batch, i, label, store, config, botorch=botorch)


def _alpha_task(
    prior: GPPrior,
    batch: TaskBatch,
    i: int,
    label: str,
    store: Store,
    config: BruteForceConfig,
    *,
    botorch: bool,
) -> AlphaTask:
    X, y = batch.X[i], batch.y[i]
    Xq, mean_y = queries(X, y), y.mean().item()
    seed = int(derive_seeds(EVALUATION_SEED, *X.shape, i, count=1)[0] >> 1)
    entry = store.find(label, lambda entry: abs(entry["mean_y"] - mean_y) < TOLERANCE)
    if entry is None:
        entry = _compute(prior, X, y, Xq, seed, config)
        store.put(label, entry)
    if botorch and "botorch" not in entry:
        entry["botorch"] = rounded(botorch_gains(prior, X, y, Xq, seed).tolist())
        store.put(label, entry)

    def read(name: str) -> Tensor:
        return torch.tensor(entry[name], dtype=torch.float64)

    found = {name: read(name) for name in ("gain", "error", "reliability", "x_star", "f_star")}
    return AlphaTask(X, y, Xq, **found, botorch=read("botorch") if botorch else None)


def _compute(
    prior: GPPrior, X: Tensor, y: Tensor, Xq: Tensor, seed: int, config: BruteForceConfig
) -> Entry:
    """Everything about a task that does not depend on a network, as JSON."""
    result = brute_force(prior, X, y, Xq, seed, config)
    thin = torch.arange(OPTIMA) * len(result.f_star) // OPTIMA
    columns = {
        "gain": result.gain,
        "error": result.error.mean(0),
        "reliability": result.reliability,
        "x_star": result.x_star[thin],
        "f_star": result.f_star[thin],
    }
    return {"mean_y": rounded(y.mean().item())} | {
        name: rounded(column.tolist()) for name, column in columns.items()
    }
