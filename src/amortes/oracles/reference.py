"""What a fully Bayesian predictive scores on a fixed set of tasks: the yardstick for networks.

A *cell* is a dimension d and a dataset size n, with `DATASETS` datasets and their queries drawn
from a prior by a seed that no recipe may have. The reference of a dataset is the mean over its
queries of

    -∫ N(y; m, v + s^2) log q(y) dy,

q the predictive of `amortes.oracles.smc`, m and v the exact posterior under the true
hyperparameters. Queries placed by looking at the optimum are left out.

The numbers take minutes, so they are kept (`amortes.oracles.store`), and used again only if the
tasks drawn here are the ones they belong to.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.files import AnyPath
from amortes.oracles.smc import PosteriorDraws, SMCConfig, hyper_posterior
from amortes.oracles.store import Entry, Store, rounded
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator
from amortes.training.batches import query_mean, take_rows
from amortes.training.recipes import EVALUATION_SEED

DIMS = (1, 2, 4, 6, 12)
SIZES = (5, 20, 45, 100)
DATASETS = 32
# Of the fingerprints of a dataset; rounding on another machine is far below, another dataset above.
TOLERANCE = 1e-3

Cell = tuple[int, int]  # dimension d and number of observations n


@dataclass(frozen=True)
class ReferenceCell:
    """Tasks of one cell and the reference's cross-entropy on each of its b datasets."""

    task: TaskBatch
    cross_entropy: Tensor  # b


def grid(prior: GPPrior) -> list[Cell]:
    """All cells whose dimension the prior covers."""
    dims = [d for d in DIMS if prior.min_dim <= d <= prior.max_dim]
    return [(d, n) for d in dims for n in SIZES]


def evaluation_task(prior: GPPrior, cell: Cell) -> TaskBatch:
    """The tasks of a cell."""
    config = TaskConfig(batch_size=DATASETS)
    return TaskStream(prior, EVALUATION_SEED, config).batch_of(0, *cell)


def smc_config(n: int) -> SMCConfig:
    """Budget for n observations: more particles where they are cheap and the posterior is wide.

    Measured: between independent runs, and for twice the particles, the reference of a dataset
    changes by 0.002 to 0.009 nats, the mean of a cell by 0.001 to 0.002. One core takes 6 minutes
    for all cells of `paper`, 7 for those of `robust`.
    """
    final = 16384 if n <= 5 else 8192 if n <= 20 else 4096 if n <= 45 else 2048
    return SMCConfig(particles=1024 if n <= 45 else 512, final_particles=final)


def reference_cell(prior: GPPrior, cell: Cell, datasets: int = DATASETS) -> ReferenceCell:
    """Compute the reference on the first `datasets` datasets of a cell; nothing is stored."""
    task = take_rows(evaluation_task(prior, cell), slice(datasets))
    rng = generator(EVALUATION_SEED, *cell)
    posterior = hyper_posterior(prior, task.X, task.y, rng, smc_config(cell[1]))
    variance = task.posterior_variance + task.noise_variance
    rows = []
    for i in range(len(task.X)):  # one by one: the mixtures have thousands of components
        one = PosteriorDraws(posterior.gp[torch.tensor([i])], posterior.z[i : i + 1])
        q = one.predict(task.Xq[i : i + 1])
        rows.append(q.cross_entropy(task.posterior_mean[i : i + 1], variance[i : i + 1]))
    return ReferenceCell(task, fair_mean(torch.cat(rows), task))


def references(
    prior: GPPrior,
    cells: Sequence[Cell],
    cache: AnyPath | None = None,
    on_cell: Callable[[Cell], object] = lambda cell: None,
) -> dict[Cell, ReferenceCell]:
    """The reference on all `cells`, computed where it is not stored yet.

    `on_cell` is called with each cell before work on it begins.
    """
    settings = {
        "seed": EVALUATION_SEED,
        "task": dataclasses.asdict(TaskConfig(batch_size=DATASETS)),
        "smc": {n: dataclasses.asdict(smc_config(n)) for n in SIZES},
    }
    store = Store("reference", prior, settings, cache)
    result = {}
    for cell in cells:
        on_cell(cell)
        task, label = evaluation_task(prior, cell), f"d={cell[0]} n={cell[1]}"
        entry = store.find(label, functools.partial(belongs, task))
        if entry is None:
            columns = fingerprint(task) | {
                "cross_entropy": reference_cell(prior, cell).cross_entropy
            }
            entry = {name: rounded(column.tolist()) for name, column in columns.items()}
            store.put(label, entry)
        values = torch.tensor(entry["cross_entropy"], dtype=torch.float64)
        result[cell] = ReferenceCell(task, values)
    return result


def belongs(task: TaskBatch, entry: Entry) -> bool:
    """Whether a stored entry was computed for these tasks, by their fingerprints."""
    for name, expected in fingerprint(task).items():
        found = torch.tensor(entry[name], dtype=torch.float64)
        if found.shape != expected.shape:
            return False
        if not torch.allclose(found, expected, rtol=0.0, atol=TOLERANCE):
            return False
    return True


def fingerprint(task: TaskBatch) -> dict[str, Tensor]:
    """Two numbers per dataset that tell it from another: each `b`."""
    variance = task.posterior_variance + task.noise_variance
    entropy = 0.5 * (2 * math.pi * math.e * variance).log()
    return {"entropy": fair_mean(entropy, task), "mean_y": task.y.mean(1)}


def fair_mean(values: Tensor, task: TaskBatch) -> Tensor:
    """Mean of `b x q` over the queries that were placed without looking at the optimum: `b`."""
    return query_mean(values, ~task.near_optimum)
